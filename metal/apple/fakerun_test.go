package apple

import (
	"encoding/binary"
	"fmt"
	"slices"

	"calla/metal/emulator"
)

// fakeRun is the command buffers that were committed, and in which orders their
// dispatches may run. Nothing runs before something waits for it; then, of all
// that no barrier and no fence holds back, choose picks the next. So a dispatch
// that is held back too little runs too early.
type fakeRun struct {
	most      int // command buffers under way
	commands  []*fakeCommand
	pending   []*fakeDispatch
	updates   map[handle]*fakeEncoder // the last of each fence
	committed int
}

type fakeCommand struct {
	number int
	left   int // dispatches
	failed error
}

// fakeEncoder starts behind another where it waits for a fence.
type fakeEncoder struct {
	behind *fakeEncoder
	fence  handle
	left   int
	ran    []bool
	undone int // the first dispatch that has not run
}

// did notes that a dispatch has run.
func (e *fakeEncoder) did(index int) {
	e.left--
	e.ran[index] = true
	for e.undone < len(e.ran) && e.ran[e.undone] {
		e.undone++
	}
}

type fakeDispatch struct {
	number  int
	command *fakeCommand
	encoder *fakeEncoder
	// before counts the dispatches of the encoder that must be done first.
	before int
	index  int // in the encoder
	uses   []handle
	launch emulator.Launch
	moves  func() // in place of a launch
}

// latest picks what was committed last.
func latest(ready []*fakeDispatch) *fakeDispatch { return ready[len(ready)-1] }

// earliest picks what was committed first, as a GPU that overlaps nothing.
func earliest(ready []*fakeDispatch) *fakeDispatch { return ready[0] }

func (f *fake) submit(queue, fence handle, b *batch) ([]handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(queue, "queue")
	f.get(fence, "fence")
	f.called("submit")
	if f.mutate != nil {
		f.mutate(b)
	}
	var commands []handle
	var command *fakeCommand
	var encoder *fakeEncoder
	index, before := 0, 0
	for i, r := range b.records {
		if r.Flags&newCommand != 0 {
			if len(commands)+1 == f.faults.submitted {
				return commands, &nativeError{Text: "no command buffer"}
			}
			command = f.run.begin(f)
			commands = append(commands, f.put(&object{kind: "command", command: command}))
		}
		if r.Flags&newEncoder != 0 {
			encoder, index, before = &fakeEncoder{fence: fence}, 0, 0
			if r.Flags&waitsFence != 0 {
				encoder.behind = f.run.updates[fence]
			}
		}
		if r.Flags&barrier != 0 {
			before = index
		}
		d := f.encode(b, r)
		d.command, d.encoder, d.before, d.index = command, encoder, before, index
		f.run.pending = append(f.run.pending, d)
		command.left++
		encoder.left++
		encoder.ran = append(encoder.ran, false)
		index++
		if last := i+1 == len(b.records) || b.records[i+1].Flags&newEncoder != 0; r.Flags&updatesFence != 0 {
			if !last {
				f.breach("the fence is updated behind dispatch %d, which is not the last of its encoder", i)
			}
			f.run.update(fence, encoder)
		}
	}
	return commands, nil
}

func (f *fake) transfer(queue, fence handle, ordered bool, moves []move) (handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(queue, "queue")
	f.get(fence, "fence")
	if f.faults.transfer {
		return 0, &nativeError{Text: "no encoder"}
	}
	encoder := &fakeEncoder{fence: fence, left: 1, ran: make([]bool, 1)}
	if ordered && !f.faults.unordered {
		encoder.behind = f.run.updates[fence]
	}
	d := &fakeDispatch{command: f.run.begin(f), encoder: encoder}
	d.command.left++
	var run []func()
	for _, m := range moves {
		if m.Bytes%4 != 0 || m.FromOffset%4 != 0 || m.ToOffset%4 != 0 {
			f.breach("a move that is not of whole words: %+v", m)
		}
		to := f.get(m.To, "buffer").memory.Bytes[m.ToOffset:][:m.Bytes]
		d.uses = append(d.uses, m.To)
		if m.From == 0 {
			run = append(run, func() { clear(to) })
			continue
		}
		from := f.get(m.From, "buffer").memory.Bytes[m.FromOffset:][:m.Bytes]
		d.uses = append(d.uses, m.From)
		run = append(run, func() { copy(to, from) })
	}
	d.moves = func() {
		for _, r := range run {
			r()
		}
	}
	f.run.pending = append(f.run.pending, d)
	f.run.update(fence, encoder)
	return f.put(&object{kind: "command", command: d.command}), nil
}

func (r *fakeRun) begin(f *fake) *fakeCommand {
	c := &fakeCommand{number: r.committed}
	r.committed++
	r.commands = append(r.commands, c)
	if len(r.commands) > r.most {
		f.breach("%d command buffers under way on a queue for %d: the caller would wait for ever", len(r.commands), r.most)
	}
	return c
}

func (r *fakeRun) update(fence handle, e *fakeEncoder) {
	if r.updates == nil {
		r.updates = map[handle]*fakeEncoder{}
	}
	r.updates[fence] = e
}

// encode copies a dispatch out of the batch, whose memory is used again.
func (f *fake) encode(b *batch, r record) *fakeDispatch {
	p := f.get(r.Pipeline, "pipeline")
	args := slices.Clone(b.args[r.Args : r.Args+r.ArgsBytes])
	d := &fakeDispatch{uses: []handle{r.Pipeline}, launch: emulator.Launch{
		Kernel: p.label, Constants: p.spec.Constants, Groups: r.Groups, Threads: [3]uint32{r.Threads, 1, 1}, Shared: r.Shared,
		Bound: []emulator.Bound{{Slot: 0, Bytes: args}},
	}}
	for i, x := range b.bindings[r.Binding : r.Binding+r.Bindings] {
		d.uses = append(d.uses, x.Buffer)
		memory := f.get(x.Buffer, "buffer").memory
		d.launch.Bound = append(d.launch.Bound, emulator.Bound{Slot: i + 1, Buffer: memory, Offset: int(x.Offset)})
	}
	return d
}

// uses says whether a dispatch that has not run uses an object.
func (r *fakeRun) uses(h handle) bool {
	for _, d := range r.pending {
		if slices.Contains(d.uses, h) || d.encoder.fence == h {
			return true
		}
	}
	return false
}

// ready says whether nothing holds a dispatch back.
func (r *fakeRun) ready(d *fakeDispatch) bool {
	return (d.encoder.behind == nil || d.encoder.behind.left == 0) && d.encoder.undone >= d.before
}

// finish runs dispatches until a command buffer is done.
func (r *fakeRun) finish(f *fake, c *fakeCommand) (result, error) {
	for c.left > 0 {
		var ready []*fakeDispatch
		for _, d := range r.pending {
			if r.ready(d) {
				ready = append(ready, d)
			}
		}
		d := f.choose(ready)
		r.pending = slices.DeleteFunc(r.pending, func(o *fakeDispatch) bool { return o == d })
		d.command.left--
		d.encoder.did(d.index)
		if d.moves != nil {
			d.moves()
		} else if err := f.execute(d.launch); err != nil && d.command.failed == nil {
			d.command.failed = &nativeError{Text: err.Error()}
		}
	}
	r.commands = slices.DeleteFunc(r.commands, func(o *fakeCommand) bool { return o == c })
	if e, ok := f.faults.command[c.number]; ok {
		return result{State: failed, Encoder: f.faults.encoder}, &e
	}
	if c.failed != nil {
		return result{State: failed, Encoder: -1}, c.failed
	}
	return result{State: succeeded, Encoder: -1, Begun: 1, Ended: 1.001}, nil
}

func (f *fake) execute(l emulator.Launch) error {
	switch {
	case f.machine == nil:
		return nil
	case f.mutate != nil && astray(l):
		return fmt.Errorf("%s is led astray by what it finds", l.Kernel)
	}
	return f.machine.Run([]emulator.Launch{l}, emulator.Schedule{Workers: 1})
}

// astray says whether a kernel that follows indices in memory, of the tiny fixture,
// finds there any that nothing can have put there in order. It would read and
// write beyond its memory.
func astray(l emulator.Launch) bool {
	words := func(slot int) []uint32 {
		b := l.Bound[slot]
		bytes := b.Bytes
		if b.Buffer != nil {
			bytes = b.Buffer.Bytes[b.Offset:]
		}
		out := make([]uint32, len(bytes)/4)
		for i := range out {
			out[i] = binary.LittleEndian.Uint32(bytes[4*i:])
		}
		return out
	}
	beyond := func(most int, values []uint32) bool {
		return slices.ContainsFunc(values, func(v uint32) bool { return v >= uint32(most) })
	}
	switch l.Kernel {
	case "embed":
		return beyond(tinyVocab, words(1)[:l.Groups[0]])
	case "place_experts":
		args, sum := words(0), uint32(0)
		for _, n := range words(1) {
			sum += n
		}
		return sum != args[0]*args[2]
	case "scatter_experts":
		return beyond(len(words(3))+1, words(2))
	case "expert_gate_up_rows", "expert_down_rows":
		entries := words(2)
		return beyond(len(entries)+1, words(1)) || beyond(len(entries), entries)
	}
	return false
}

const tinyVocab = 720
