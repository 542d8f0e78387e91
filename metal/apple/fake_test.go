package apple

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"calla/metal/emulator"
)

// fake is the shim without Metal. It keeps its rules: what a command buffer uses
// must live until that is done, a handle is released once, a queue takes so many
// command buffers, and two dispatches are in order only where a barrier or the
// fence says so. It runs them on the emulated device as late as it can (see
// fakeRun), and notes every breach.
type fake struct {
	t       testing.TB
	machine emulator.Machine // nil: dispatches do nothing
	choose  func(ready []*fakeDispatch) *fakeDispatch
	mutate  func(*batch) // of what is submitted
	faults  faults
	told    facts

	mu      sync.Mutex
	objects map[handle]*object
	next    handle
	calls   map[string]int // by method
	files   map[string]bool
	run     fakeRun
	waited  time.Duration // limit of the last wait
}

// faults are what goes wrong.
type faults struct {
	device, queue, fence, residency bool
	compile                         map[string]string // report by source
	pipeline                        map[string]string // by kernel, whether archived or not
	archive, add, save, load        bool
	buffer                          string // name of one that there is no memory for
	submitted                       int    // submit fails behind so many command buffers, counted from 1
	command                         map[int]nativeError
	encoder                         int32 // at fault, where a command fails
	hangs                           bool
	transfer, unordered             bool // transfers fail, or don't wait for the fence
	lanes                           uint32
}

// object is what a handle names.
type object struct {
	kind    string
	label   string
	source  string // of a library
	archive map[string]bool
	spec    pipelineSpec
	memory  *emulator.Buffer
	host    bool
	in      map[handle]bool // of a residency set
	wired   bool
	command *fakeCommand
}

func newFake(t testing.TB, m emulator.Machine) *fake {
	return &fake{
		t: t, machine: m, choose: latest,
		objects: map[handle]*object{}, calls: map[string]int{}, files: map[string]bool{}, next: 100,
		told: facts{
			deviceFacts: deviceFacts{Family: 9, Unified: 1, Residency: 1},
			Name:        "Apple M3 Max", Memory: 64 << 30, Budget: 48 << 30, MaxBuffer: 4 << 30, OS: "15.1", Build: "24B83",
		},
	}
}

func (f *fake) breach(format string, args ...any) {
	f.t.Helper()
	f.t.Errorf("a breach of Metal's rules: "+format, args...)
}

func (f *fake) called(method string) int {
	f.calls[method]++
	return f.calls[method]
}

// count returns how often a method was called.
func (f *fake) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// wired says whether a residency set is requested.
func (f *fake) wired(set handle) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.get(set, "residency set").wired
}

func (f *fake) put(o *object) handle {
	f.next++
	f.objects[f.next] = o
	return f.next
}

// get returns an object of a kind. The caller holds mu.
func (f *fake) get(h handle, kind string) *object {
	o := f.objects[h]
	if o == nil || o.kind != kind {
		f.breach("handle %d is no %s", h, kind)
		return &object{kind: kind}
	}
	return o
}

func (f *fake) device() (handle, facts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.device {
		return 0, facts{}, &nativeError{Text: "the system has no Metal device"}
	}
	return f.put(&object{kind: "device"}), f.told, nil
}

func (f *fake) queue(device handle, most int) handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	if f.faults.queue {
		return 0
	}
	f.run.most = most
	return f.put(&object{kind: "queue"})
}

func (f *fake) fence(device handle) handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	if f.faults.fence {
		return 0
	}
	f.called("fence")
	return f.put(&object{kind: "fence"})
}

func (f *fake) compile(device handle, source string, language uint32) (handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	f.called("compile")
	var name string
	fmt.Sscanf(source, "#line 1 %q", &name)
	if report, ok := f.faults.compile[name]; ok {
		return 0, &nativeError{3, report}
	}
	if strings.Contains(source, "<metal_tensor>") && language < 4<<16 {
		return 0, &nativeError{3, name + ":1:1: error: no such header"}
	}
	return f.put(&object{kind: "library", source: source}), nil
}

func (f *fake) load(device handle, path string) (handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	f.called("load")
	source, err := os.ReadFile(path)
	if err != nil || f.faults.load {
		return 0, &nativeError{1, "not a library"}
	}
	return f.put(&object{kind: "library", source: string(source)}), nil
}

var functionName = regexp.MustCompile(`host_name\("(\w+)"\)|\bkernel void (\w+)\(`)

func (f *fake) functions(library handle) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, m := range functionName.FindAllStringSubmatch(f.get(library, "library").source, -1) {
		names = append(names, cmp.Or(m[1], m[2]))
	}
	return names
}

func (f *fake) archive(device handle, path string) (handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	f.called("archive")
	o := &object{kind: "archive", archive: map[string]bool{}}
	if path != "" {
		content, err := os.ReadFile(path)
		if err != nil || f.faults.archive || !strings.HasPrefix(string(content), "archive") {
			return 0, &nativeError{2, "not an archive of this system"}
		}
		for _, name := range strings.Fields(string(content)) {
			o.archive[name] = true
		}
	}
	return f.put(o), nil
}

func (f *fake) save(archive handle, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.save {
		return &nativeError{4, "the disk is full"}
	}
	names := []string{"archive"}
	for name := range f.get(archive, "archive").archive {
		names = append(names, name)
	}
	return os.WriteFile(path, []byte(strings.Join(names, "\n")), 0o600)
}

func (f *fake) pipeline(device handle, function string, spec *pipelineSpec) (handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	f.get(spec.Library, "library")
	key := strings.ReplaceAll(fmt.Sprint(function, spec.Constants), " ", ",")
	if spec.Archive != 0 {
		a := f.get(spec.Archive, "archive")
		if spec.Add != 0 && f.faults.add {
			return 0, &nativeError{2, "the archive is full"}
		}
		a.archive[key] = a.archive[key] || spec.Add != 0
		if spec.ArchivedOnly != 0 && !a.archive[key] {
			return 0, &nativeError{2, "not in the archive"}
		}
	}
	if spec.Archive == 0 || spec.Add != 0 {
		f.called("compiled pipeline")
	}
	if report, ok := f.faults.pipeline[function]; ok {
		return 0, &nativeError{3, report}
	}
	if f.machine != nil {
		if err := f.machine.Check(function, spec.Constants); err != nil {
			return 0, &nativeError{Text: err.Error()}
		}
	}
	spec.MostThreads, spec.SIMDWidth = 1024, cmp.Or(f.faults.lanes, 32)
	return f.put(&object{kind: "pipeline", label: function, spec: *spec}), nil
}

func (f *fake) buffer(device handle, label string, bytes int64, host bool) (handle, []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	if f.faults.buffer == label {
		return 0, nil
	}
	b := &emulator.Buffer{}
	if f.machine == nil {
		b.Bytes = make([]byte, bytes)
	} else {
		var err error
		if b, err = f.machine.Alloc(int(bytes)); err != nil {
			return 0, nil
		}
	}
	h := f.put(&object{kind: "buffer", label: label, memory: b, host: host})
	if !host {
		return h, nil
	}
	return h, b.Bytes
}

func (f *fake) residency(device, queue handle) (handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(device, "device")
	f.get(queue, "queue")
	if f.told.Residency == 0 {
		f.breach("a residency set on a system without")
	}
	if f.faults.residency {
		return 0, &nativeError{1, "no residency set"}
	}
	return f.put(&object{kind: "residency set", in: map[handle]bool{}}), nil
}

func (f *fake) reside(set, buffer handle, add bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get(buffer, "buffer")
	in := f.get(set, "residency set").in
	if in[buffer] == add {
		f.breach("buffer %d put in or taken out of the residency set twice", buffer)
	}
	in[buffer] = add
	if !add {
		delete(in, buffer)
	}
}

func (f *fake) wire(set handle, wired bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.called(fmt.Sprintf("wire %v", wired))
	f.get(set, "residency set").wired = wired
}

func (f *fake) release(h handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[h]
	if o == nil {
		f.breach("handle %d is released twice", h)
		return
	}
	if o.kind != "command" && f.run.uses(h) {
		f.breach("%s %s is released while a command buffer is at work on it", o.kind, o.label)
	}
	for _, other := range f.objects {
		if other.in[h] {
			f.breach("buffer %s is released in a residency set", o.label)
		}
	}
	if o.memory != nil && f.machine != nil {
		f.machine.Free(o.memory)
	}
	delete(f.objects, h)
}

func (f *fake) live() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(len(f.objects))
}

// kinds lists what is live, for a message.
func (f *fake) kinds() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, o := range f.objects {
		out = append(out, o.kind+" "+o.label)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (f *fake) wait(command handle, limit time.Duration) (result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if limit < 0 {
		f.breach("a wait of %v", limit)
	}
	f.waited = limit
	c := f.get(command, "command").command
	if f.faults.hangs || c == nil {
		return result{State: underWay, Encoder: -1}, nil
	}
	return f.run.finish(f, c)
}
