package checkpoint

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxHeader is the longest header that safetensors allows, in bytes.
	maxHeader = 100_000_000
	// maxRank bounds the axes of a tensor; the most in a real file is five.
	maxRank = 8
	// minEntry is less than the shortest text of one tensor in a header, so
	// that the length of a header bounds the memory for its entries.
	minEntry = 40
	// maxOffset bounds offsets so that adding a header's length to one cannot
	// overflow.
	maxOffset = math.MaxInt64 - 2*maxHeader
)

// entry is one tensor as the header of a shard describes it.
type entry struct {
	name       string
	dtype      string // as safetensors spells it
	rank       int
	extents    [maxRank]int64
	begin, end int64 // of its bytes in the shard's data section
}

func (e *entry) shape() []int64 { return e.extents[:e.rank] }

// elementBits gives the size of the element types of safetensors. A checkpoint
// may hold any of them in tensors that we skip.
var elementBits = map[string]int64{
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32,
	"I64": 64, "U64": 64, "F64": 64, "C64": 64,
}

// parseHeader reads the header of a safetensors file and returns its tensors by
// name. It checks each tensor by itself: known fields once each, a known
// element type, a byte range as long as the shape asks. Names share the memory
// of text; besides, it allocates a few times the length of text at most,
// whatever the text says, because memory for entries is reserved once and
// nothing nests.
func parseHeader(text string) ([]entry, error) {
	if !strings.HasPrefix(text, "{") {
		return nil, fmt.Errorf("no JSON object: %s", quote(text[:min(len(text), 16)]))
	}
	s := scanner{text: text}
	entries := make([]entry, 0, min(strings.Count(text, "{"), len(text)/minEntry+1))
	metadata := false
	err := s.members(func(name string) error {
		if name == "__metadata__" {
			if metadata {
				return s.errorf("__metadata__ a second time")
			}
			metadata = true
			return s.metadata()
		}
		e := entry{name: name}
		if err := s.tensor(&e); err != nil {
			return fmt.Errorf("tensor %s: %w", quote(name), err)
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return entries, uniqueNames(entries)
}

// uniqueNames sorts entries by name and refuses a name that is there twice.
func uniqueNames(entries []entry) error {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(entries); i++ {
		if entries[i].name == entries[i-1].name {
			return fmt.Errorf("tensor %s is there twice", quote(entries[i].name))
		}
	}
	return nil
}

// metadata takes the one member that is no tensor: strings by name, which say
// nothing that we need.
func (s *scanner) metadata() error {
	err := s.members(func(string) error {
		_, err := s.str()
		return err
	})
	if err != nil {
		return fmt.Errorf("__metadata__: %w", err)
	}
	return nil
}

// tensorFields are what a header says of a tensor.
var tensorFields = []string{"dtype", "shape", "data_offsets"}

// tensor takes the object that describes one tensor.
func (s *scanner) tensor(e *entry) error {
	var seen [3]bool
	err := s.members(func(field string) error {
		i := slices.Index(tensorFields, field)
		if i < 0 {
			return s.errorf("unknown field %s", quote(field))
		}
		if seen[i] {
			return s.errorf("%s a second time", field)
		}
		seen[i] = true
		if err := s.tensorField(field, e); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if seen != [3]bool{true, true, true} {
		return s.errorf("want dtype, shape and data_offsets")
	}
	return e.check()
}

func (s *scanner) tensorField(field string, e *entry) (err error) {
	switch field {
	case "dtype":
		e.dtype, err = s.str()
	case "shape":
		e.rank, err = s.integers(e.extents[:], math.MaxInt64)
	case "data_offsets":
		var pair [2]int64
		var n int
		if n, err = s.integers(pair[:], maxOffset); err == nil && n != len(pair) {
			err = s.errorf("%d numbers, want 2", n)
		}
		e.begin, e.end = pair[0], pair[1]
	}
	return err
}

// integers takes an array of at most len(into) integers from 0 to most and
// returns how many there are.
func (s *scanner) integers(into []int64, most int64) (n int, err error) {
	err = s.elements(func() error {
		if n == len(into) {
			return s.errorf("more than %d numbers", len(into))
		}
		text, err := s.number()
		if err != nil {
			return err
		}
		x, err := strconv.ParseInt(text, 10, 64)
		if err != nil || x < 0 || x > most {
			return s.errorf("%s, want an integer from 0 to %d", value(text), most)
		}
		into[n] = x
		n++
		return nil
	})
	return n, err
}

// check compares a tensor's byte range with its element type and shape.
func (e *entry) check() error {
	bits, ok := elementBits[e.dtype]
	if !ok {
		return fmt.Errorf("unknown element type %s", quote(e.dtype))
	}
	for _, x := range e.shape() {
		if x != 0 && bits > math.MaxInt64/x {
			return fmt.Errorf("shape %v of %s does not fit 64 bits", e.shape(), e.dtype)
		}
		bits *= x
	}
	if e.begin > e.end {
		return fmt.Errorf("data_offsets [%d, %d]: ends before it begins", e.begin, e.end)
	}
	if bits%8 != 0 || e.end-e.begin != bits/8 {
		return fmt.Errorf("data_offsets [%d, %d]: %d bytes, but %s %v has %d bits",
			e.begin, e.end, e.end-e.begin, e.dtype, e.shape(), bits)
	}
	return nil
}

// dataEnd checks that the byte ranges of a shard's tensors follow each other
// without overlap and without holes, as the format asks, and returns where the
// last one ends. It sorts the entries by range.
func dataEnd(entries []entry) (int64, error) {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	var last entry
	for _, e := range entries {
		switch {
		case e.begin < last.end:
			return 0, fmt.Errorf("tensors %s and %s overlap: bytes %d to %d and %d to %d",
				quote(last.name), quote(e.name), last.begin, last.end, e.begin, e.end)
		case e.begin > last.end:
			return 0, fmt.Errorf("tensor %s: begins at byte %d of the data, want %d: bytes that no tensor has",
				quote(e.name), e.begin, last.end)
		}
		last = e
	}
	return last.end, nil
}
