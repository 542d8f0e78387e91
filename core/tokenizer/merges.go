package tokenizer

import (
	"bytes"
	"fmt"
	"math/bits"
)

// noMerge is the rank of a pair that no merge joins.
const noMerge = int32(1<<31 - 1)

// mergeTable finds the merge of two neighbouring tokens: an open-addressed hash
// table with linear probing, at most half full.
type mergeTable struct {
	slots []mergeSlot // a power of two of them
	shift uint
	made  []int32 // rank → the token that the merge makes
}

type mergeSlot struct {
	left, right int32
	rank        int32 // from 1 on; 0 marks a free slot
}

func newMergeTable(merges int) mergeTable {
	log := uint(bits.Len(uint(2*merges + 1)))
	return mergeTable{
		slots: make([]mergeSlot, 1<<log),
		shift: 64 - log,
		made:  make([]int32, 0, merges),
	}
}

// rank returns the rank of a pair; the lowest is merged first.
func (t *mergeTable) rank(left, right int32) int32 {
	slot := t.find(left, right)
	if slot.rank == 0 {
		return noMerge
	}
	return slot.rank - 1
}

// find returns the slot of a pair, or the free one where it would be.
func (t *mergeTable) find(left, right int32) *mergeSlot {
	const golden = 0x9E3779B97F4A7C15 // 2⁶⁴/φ: the high bits of the product are well mixed
	at := (uint64(uint32(left))<<32 | uint64(uint32(right))) * golden >> t.shift
	for {
		slot := &t.slots[at]
		if slot.rank == 0 || slot.left == left && slot.right == right {
			return slot
		}
		at = (at + 1) & uint64(len(t.slots)-1)
	}
}

// add appends a merge, of the next rank. It returns false if the pair has one.
func (t *mergeTable) add(m merge) bool {
	slot := t.find(m.left, m.right)
	if slot.rank != 0 {
		return false
	}
	t.made = append(t.made, m.made)
	*slot = mergeSlot{m.left, m.right, int32(len(t.made))}
	return true
}

// merge is a pair of tokens and the one it makes.
type merge struct{ left, right, made int32 }

// readMerges reads model.merges, an array in order of rank. A merge is a pair
// ["a", "b"] or, in older files, a string "a b".
func readMerges(r *jsonReader, v *spelledVocabulary) (mergeTable, error) {
	var merges []merge
	var left, joined []byte
	err := r.array(func(i int) error {
		var right []byte
		var err error
		if left, right, err = readPair(r, left); err != nil {
			return fmt.Errorf("model.merges[%d]: %w", i, err)
		}
		joined = append(append(joined[:0], left...), right...)
		var ids [3]int32
		for k, token := range [...][]byte{left, right, joined} {
			var ok bool
			if ids[k], ok = v.ids[string(token)]; !ok {
				return fmt.Errorf("model.merges[%d]: %s, want a token of model.vocab", i, quote(token))
			}
		}
		merges = append(merges, merge{ids[0], ids[1], ids[2]})
		return nil
	})
	if err != nil {
		return mergeTable{}, err
	}
	table := newMergeTable(len(merges))
	for i, m := range merges {
		if !table.add(m) {
			return mergeTable{}, fmt.Errorf("model.merges[%d]: %s and %s again, want each pair once",
				i, quote(v.tokens[m.left]), quote(v.tokens[m.right]))
		}
	}
	return table, nil
}

// readPair reads one merge. It copies the first part into buf, because reading
// the second may take its place.
func readPair(r *jsonReader, buf []byte) (left, right []byte, err error) {
	if r.peek() != '[' {
		text, err := r.str()
		if err != nil {
			return nil, nil, err
		}
		left, right, ok := bytes.Cut(text, []byte{' '})
		if !ok || bytes.IndexByte(right, ' ') >= 0 {
			return nil, nil, fmt.Errorf("%s, want two tokens with a space between", quote(text))
		}
		return append(buf[:0], left...), right, nil
	}
	parts := 0
	err = r.array(func(i int) error {
		text, err := r.str()
		switch parts++; i {
		case 0:
			left = append(buf[:0], text...)
		case 1:
			right = text
		}
		return err
	})
	if err == nil && parts != 2 {
		err = fmt.Errorf("%d tokens, want 2", parts)
	}
	return left, right, err
}
