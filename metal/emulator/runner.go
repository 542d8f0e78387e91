package emulator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Runner is a program that runs lists, built with sanitizers. A list's buffers
// travel there and back with each run. A sanitizer's finding ends the program;
// the run's error then carries the report, and the next run starts a new one.
type Runner struct {
	signatures
	path    string
	process *process
}

var _ Machine = (*Runner)(nil)

// process is a started runner.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	report bytes.Buffer
}

// Start makes a Runner of the program at path.
func Start(path string) (*Runner, error) {
	out, err := exec.Command(path, "--kernels").Output()
	if err != nil {
		return nil, fmt.Errorf("emulator: start runner: %w; scripts/emulator --tests builds it", err)
	}
	r := &Runner{path: path, signatures: signatures{}}
	for line := range strings.Lines(string(out)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		s := signature{}
		copy(s.constants[:], words[1:])
		if err := r.add(words[0], s); err != nil {
			return nil, fmt.Errorf("%w in %s", err, path)
		}
	}
	return r, nil
}

// Alloc implements Machine.
func (r *Runner) Alloc(size int) (*Buffer, error) {
	return &Buffer{Bytes: bytes.Repeat([]byte{0xFF}, size)}, nil
}

// Free implements Machine.
func (r *Runner) Free(b *Buffer) { b.Bytes = nil }

// Run implements Machine.
func (r *Runner) Run(launches []Launch, how Schedule) error {
	if len(launches) == 0 {
		return nil
	}
	if err := r.check(launches); err != nil {
		return err
	}
	if r.process == nil {
		if err := r.start(); err != nil {
			return err
		}
	}
	request, buffers := encode(launches, how)
	if _, err := r.process.in.Write(request); err != nil {
		return r.crash(launches)
	}
	var head [3]uint32 // status, failed launch, bytes of message
	if err := binary.Read(r.process.out, binary.LittleEndian, &head); err != nil {
		return r.crash(launches)
	}
	message := make([]byte, head[2])
	if _, err := io.ReadFull(r.process.out, message); err != nil {
		return r.crash(launches)
	}
	for _, b := range buffers {
		if _, err := io.ReadFull(r.process.out, b.Bytes); err != nil {
			return r.crash(launches)
		}
	}
	if head[0] != 0 {
		return &Fault{int(head[1]), launches[head[1]].Kernel, string(message)}
	}
	return nil
}

func (r *Runner) start() error {
	p := &process{cmd: exec.Command(r.path)}
	p.cmd.Env = append(os.Environ(),
		"ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0", "TSAN_OPTIONS=halt_on_error=1",
		"UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")
	p.cmd.Stderr = &p.report
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return fmt.Errorf("emulator: start runner: %w", err)
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return fmt.Errorf("emulator: start runner: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("emulator: start runner: %w", err)
	}
	r.process = p
	return nil
}

// crash waits for a runner that has gone and returns its report. The launch is
// the last that it had begun.
func (r *Runner) crash(launches []Launch) error {
	p := r.process
	r.process = nil
	p.in.Close()
	err := p.cmd.Wait()
	report := p.report.String()
	f := &Fault{Message: fmt.Sprintf("runner: %v\n%s", err, report)}
	for line := range strings.Lines(report) {
		if n, _ := fmt.Sscanf(line, "launch %d", &f.Launch); n == 1 {
			f.Message = strings.Replace(f.Message, line, "", 1)
		}
	}
	f.Kernel = launches[f.Launch].Kernel
	return f
}

// Close implements Machine.
func (r *Runner) Close() error {
	if r.process == nil {
		return nil
	}
	r.process.in.Close()
	err := r.process.cmd.Wait()
	r.process = nil
	return err
}

// encode writes a run's request, as runtime/runner.cpp reads it, and lists the
// buffers in the order in which they come back.
func encode(launches []Launch, how Schedule) ([]byte, []*Buffer) {
	var buffers []*Buffer
	index := map[*Buffer]uint32{}
	for _, l := range launches {
		for _, b := range l.Bound {
			if _, ok := index[b.Buffer]; !ok && b.Buffer != nil {
				index[b.Buffer] = uint32(len(buffers))
				buffers = append(buffers, b.Buffer)
			}
		}
	}
	var out []byte
	u32 := func(v ...uint32) {
		for _, x := range v {
			out = binary.LittleEndian.AppendUint32(out, x)
		}
	}
	block := func(b []byte) {
		out = binary.LittleEndian.AppendUint64(out, uint64(len(b)))
		out = append(out, b...)
	}
	u32(how.Order, uint32(how.Workers), uint32(len(buffers)), uint32(len(launches)))
	for _, b := range buffers {
		block(b.Bytes)
	}
	for _, l := range launches {
		block([]byte(l.Kernel))
		barrier := uint32(0)
		if l.Barrier {
			barrier = 1
		}
		u32(barrier, l.Groups[0], l.Groups[1], l.Groups[2], l.Threads[0], l.Threads[1], l.Threads[2], l.Shared)
		u32(l.Constants[:]...)
		u32(uint32(len(l.Bound)))
		for _, b := range l.Bound {
			if b.Buffer == nil {
				u32(uint32(b.Slot), ^uint32(0))
				block(b.Bytes)
				continue
			}
			u32(uint32(b.Slot), index[b.Buffer])
			out = binary.LittleEndian.AppendUint64(out, uint64(b.Offset))
		}
	}
	return out, buffers
}
