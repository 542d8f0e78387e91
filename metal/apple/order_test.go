package apple

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/model"
)

// dropped is one flag of one record of one submitted list.
type dropped struct {
	list, record int
	flag         uint32
}

// shows runs the calls without the flag, and says whether anything is different.
func (x dropped) shows(f *fake, d *Driver, m *model.Model, want outcome) bool {
	list := 0
	f.mutate = func(b *batch) {
		if list == x.list {
			b.records[x.record].Flags &^= x.flag
		}
		list++
	}
	d.careful = 0 // what was dropped before may have ended in an error
	got, err := calls(m, 1, 2)
	return err != nil || !same(got, want)
}

// around returns which records are those of the layers about the first that has a
// kernel.
func around(f *fake, records []record, kernel string) (first, end int) {
	for i, r := range records {
		if strings.HasPrefix(f.get(r.Pipeline, "pipeline").label, kernel) {
			return max(i-len(records)/6, 0), min(i+len(records)/9, len(records))
		}
	}
	return 0, len(records)
}

// TestDroppedOrder takes away, one at a time, each barrier of a delta layer and an
// attention layer in a prefill and in a decoded token, and the lists' waits for the
// fence and updates of it: each must show. So the tests above would see it if the
// driver lost one, and no list has one in vain.
func TestDroppedOrder(t *testing.T) {
	f := newFake(t, openMachine(t))
	d := open(t, f, Options{})
	m := tiny(t, d)

	var lists [][]record
	f.mutate = func(b *batch) { lists = append(lists, append([]record(nil), b.records...)) }
	want := mustCall(t, m, 1, 2)
	if len(lists) != 3 {
		t.Fatalf("%d lists, want one of prefill and two tokens", len(lists))
	}
	for list, records := range lists[:2] {
		first, end := around(f, records, "attend_")
		if testing.Short() {
			end = first + 5
		}
		for i, r := range records {
			if i > 0 && i+1 < len(records) && (i < first || i >= end) {
				continue
			}
			for flag, name := range map[uint32]string{barrier: "barrier", waitsFence: "wait", updatesFence: "update"} {
				if r.Flags&flag == 0 || flag == waitsFence && list == 0 {
					// Nothing is under way before the first list.
					continue
				}
				if !(dropped{list, i, flag}).shows(f, d, m, want) {
					t.Errorf("list %d: without the %s of record %d nothing is different", list, name, i)
				}
			}
		}
	}
	f.mutate, d.careful = nil, 0
	if diff := cmp.Diff(want, mustCall(t, m, 1, 2)); diff != "" {
		t.Errorf("with all of them: %s", diff)
	}
}

// TestDroppedFenceWithin takes away the fence between two command buffers of one
// list.
func TestDroppedFenceWithin(t *testing.T) {
	f := newFake(t, openMachine(t))
	d := open(t, f, Options{})
	m := tiny(t, d)
	want := mustCall(t, m, 1, 2)
	for _, flag := range []uint32{waitsFence, updatesFence} {
		t.Run(fmt.Sprintf("flag %d", flag), func(t *testing.T) {
			list, cut := 0, 0
			f.mutate = func(b *batch) {
				if list++; list != 1 {
					return
				}
				for i := range b.records {
					if i > 0 && b.records[i].Flags&newCommand != 0 && cut == 0 {
						cut = i
						at := i
						if flag == updatesFence {
							at--
						}
						b.records[at].Flags &^= flag
					}
				}
			}
			d.pace.rate = 0.01
			if got, err := calls(m, 1, 2); cut == 0 || err == nil && same(got, want) {
				t.Errorf("cut at record %d without flag %d: nothing is different", cut, flag)
			}
		})
	}
}
