// Command forward evaluates token ids with Calla, as measure.py tells it to:
//
//	forward CHECKPOINT THREADS CONTEXT [PROFILE]
//
// on that many threads of the processor, or with 0 on a Mac's GPU.
//
// It answers each line of standard input with a line of JSON; the README of
// scripts/bench has the lines. Into the file PROFILE it writes where the
// processor's time went, for go tool pprof.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/cpu"
	"calla/core/model"
	"calla/metal"
	"calla/metal/apple"
)

// chunk is the most prompt tokens that a call of the product evaluates.
const chunk = 2048

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "forward:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 3 && len(arguments) != 4 {
		return errors.New("usage: forward CHECKPOINT THREADS CONTEXT [PROFILE]")
	}
	threads, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	capacity, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(max(threads, 2)) // a goroutine must be free to read lines
	f, err := load(arguments[0], threads, capacity)
	if err != nil {
		return err
	}
	if len(arguments) == 4 {
		end, err := profile(arguments[3])
		if err != nil {
			return err
		}
		defer end()
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer, err := f.answer(lines.Text())
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		say(answer)
	}
	return lines.Err()
}

// profile begins to note where time goes; end writes it to the file.
func profile(name string) (end func(), err error) {
	out, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		if err := out.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "forward:", err)
		}
	}, nil
}

func say(answer any) {
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err) // nobody listens any more
	}
}

// forward is a model with a state of one sequence.
type forward struct {
	device backend.Device
	model  *model.Model
	state  backend.State
	step   backend.Step // the last call's
}

func load(dir string, threads, capacity int) (*forward, error) {
	start := time.Now()
	c, err := checkpoint.Open(checkpoint.Dir(dir), checkpoint.Options{AnySize: true})
	if err != nil {
		return nil, err
	}
	f := &forward{}
	if f.device, err = open(threads); err != nil {
		return nil, err
	}
	if f.model, err = model.Load(context.Background(), f.device, c, 0, nil); err != nil {
		return nil, err
	}
	if f.state, err = f.model.NewState(capacity); err != nil {
		return nil, err
	}
	say(map[string]any{"loaded": time.Since(start).Seconds(), "system": f.device.Name()})
	return f, nil
}

// open opens the processor or, for no threads of it, the GPU.
func open(threads int) (backend.Device, error) {
	if threads > 0 {
		return cpu.New(cpu.Options{Threads: threads}), nil
	}
	d, err := apple.Open(apple.Options{})
	if err != nil {
		return nil, err
	}
	return metal.New(d, metal.Options{}), nil
}

func (f *forward) answer(line string) (any, error) {
	var what string
	var n int
	if _, err := fmt.Sscan(line, &what, &n); err != nil {
		return nil, err
	}
	switch what {
	case "prefill":
		return f.prefill(n)
	case "decode":
		return f.decode(n, false)
	case "greedy":
		return f.decode(n, true)
	case "logits":
		return map[string]any{"logits": f.step.Logits()}, nil
	case "bandwidth":
		return f.bandwidth(n)
	}
	return nil, fmt.Errorf("unknown")
}

// measured is what a prefill or some steps of decode took and chose.
type measured struct {
	Seconds float64 `json:"seconds"`
	Tokens  []int32 `json:"tokens"`
}

// prefill evaluates the first n tokens from nothing, to the token that follows.
func (f *forward) prefill(n int) (any, error) {
	f.state.Reset()
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = f.token(i)
	}
	start := time.Now()
	for from := 0; from < n; from += chunk {
		to := min(from+chunk, n)
		var err error
		if f.step, err = f.model.Prefill(f.state, tokens[from:to], []int{0}, to == n); err != nil {
			return nil, err
		}
	}
	first := f.step.Argmax()
	return measured{time.Since(start).Seconds(), []int32{first}}, nil
}

// decode evaluates n more tokens one by one: the given ones, or those that the
// model chooses.
func (f *forward) decode(n int, own bool) (any, error) {
	chosen := make([]int32, 0, n)
	next := f.step.Argmax()
	start := time.Now()
	for range n {
		t := next
		if !own {
			t = f.token(f.state.Len())
		}
		var err error
		if f.step, err = f.model.Decode(f.state, t); err != nil {
			return nil, err
		}
		next = f.step.Argmax()
		chosen = append(chosen, next)
	}
	return measured{time.Since(start).Seconds(), chosen}, nil
}

// token is what every engine is given at a position.
func (f *forward) token(position int) int32 {
	x := uint32(position)*2654435761 + 12345
	x ^= x >> 15
	return int32((x * 2246822519 >> 8) % uint32(f.model.Config().Vocab))
}

// bandwidth is the best of some reads of n MiB that no cache holds, in bytes a
// second.
func (f *forward) bandwidth(n int) (any, error) {
	device, ok := f.device.(*cpu.Device)
	if !ok {
		return nil, errors.New("only the processor's is measured")
	}
	memory := make([]byte, n<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1 // the page exists
	}
	best := 0.0
	for range 5 {
		start := time.Now()
		device.Read(memory)
		best = max(best, float64(len(memory))/time.Since(start).Seconds())
	}
	return map[string]any{"bytes_a_second": best}, nil
}
