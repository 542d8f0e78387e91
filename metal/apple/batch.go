package apple

import (
	"fmt"

	"calla/metal"
)

// batch is a list as submit takes it. Its memory is used again.
type batch struct {
	records  []record
	bindings []binding
	args     []byte
	labels   []byte // each ends with a zero
	commands int    // command buffers that it begins
}

// span is the dispatches of one encoder: from first up to, not including, end.
type span struct {
	first, end int
	command    bool   // it begins a command buffer
	label      string // which dispatches these are, for errors
}

// label says of each span which dispatches it is.
func label(l *metal.List, spans []span) {
	n, name := len(l.Dispatches), func(i int) string { return l.Dispatches[i].Kernel.String() }
	for i := range spans {
		s := &spans[i]
		if last := s.end - 1; last > s.first {
			s.label = fmt.Sprintf("dispatches %d to %d of %d, %s to %s", s.first, last, n, name(s.first), name(last))
		} else {
			s.label = fmt.Sprintf("dispatch %d of %d, %s", s.first, n, name(s.first))
		}
	}
}

// argsAlignment is that of an argument struct among others.
const argsAlignment = 16

// fill lays a list out in spans. The first encoder waits for the fence where
// ordered says that something updates it.
func (b *batch) fill(l *metal.List, spans []span, pipelines map[metal.Kernel]pipeline, ordered bool) {
	b.records, b.bindings, b.args, b.labels, b.commands = b.records[:0], b.bindings[:0], b.args[:0], b.labels[:0], 0
	for _, s := range spans {
		for i := s.first; i < s.end; i++ {
			d := &l.Dispatches[i]
			b.add(d, pipelines[d.Kernel].handle)
		}
		first, last := &b.records[s.first], &b.records[s.end-1]
		first.Flags = first.Flags&^barrier | newEncoder
		if ordered {
			first.Flags |= waitsFence
		}
		ordered = true
		if s.command {
			first.Flags |= newCommand
			b.commands++
		}
		last.Flags |= updatesFence
		first.Label = uint32(len(b.labels))
		b.labels = append(append(b.labels, s.label...), 0)
	}
}

// add appends a dispatch.
func (b *batch) add(d *metal.Dispatch, pipeline handle) {
	r := record{
		Pipeline: pipeline, Groups: d.Grid, Threads: d.Threads, Shared: d.Shared,
		Binding: uint32(len(b.bindings)), Bindings: uint32(len(d.Buffers)),
	}
	if d.Barrier {
		r.Flags |= barrier
	}
	for len(b.args)%argsAlignment != 0 {
		b.args = append(b.args, 0)
	}
	r.Args, r.ArgsBytes = uint32(len(b.args)), uint32(len(d.Args))
	b.args = append(b.args, d.Args...)
	for _, x := range d.Buffers {
		b.bindings = append(b.bindings, binding{x.Buffer.Native.(*memory).handle, uint64(x.Offset)})
	}
	b.records = append(b.records, r)
}
