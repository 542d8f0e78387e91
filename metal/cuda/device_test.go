//go:build linux

package cuda

import (
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// standIn opens testdata/driver.c in the driver's place.
func standIn(t *testing.T) *Device {
	t.Helper()
	const clang = "clang-19"
	if _, err := exec.LookPath(clang); err != nil {
		t.Skipf("no %s", clang)
	}
	library := filepath.Join(t.TempDir(), "libcuda.so")
	if out, err := exec.Command(clang, "-shared", "-fPIC", "-o", library, "testdata/driver.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d, err := open(library)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// loaded compiles a kernel of two pointers.
func loaded(t *testing.T, d *Device, kernel string) *Function {
	t.Helper()
	f, err := d.Load(source(t), kernel, [4]uint32{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLaunch(t *testing.T) {
	d := standIn(t)
	f := loaded(t, d, "plain")
	if f.Registers != 40 {
		t.Errorf("%d registers, want 40", f.Registers)
	}
	out, err := d.Alloc(40)
	if err != nil {
		t.Fatal(err)
	}
	values := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, 11), 13<<32|12)
	if err := d.Launch(f, [3]uint32{2, 3, 4}, 64, 1024, values, []Pointer{out, 0}); err != nil {
		t.Fatal(err)
	}
	e, err := d.Record()
	if err == nil {
		err = e.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 40)
	if err := d.Read(raw, out); err != nil {
		t.Fatal(err)
	}
	var got []uint32
	for i := 0; i < len(raw); i += 4 {
		got = append(got, binary.LittleEndian.Uint32(raw[i:]))
	}
	if want := []uint32{2, 3, 4, 64, 1, 1, 1024, 11, 12, 13}; !slices.Equal(got, want) {
		t.Errorf("the kernel saw %v, want %v", got, want)
	}
	if err := d.Launch(f, [3]uint32{1, 1, 1}, 32, 0, values, []Pointer{out}); err == nil || !strings.Contains(err.Error(), "2 parameters, want 3") {
		t.Errorf("a launch without a pointer: %v", err)
	}
}

func TestMemory(t *testing.T) {
	d := standIn(t)
	shared, at, err := d.AllocShared(100)
	if err != nil {
		t.Fatal(err)
	}
	private, err := d.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 4)
	for _, err := range []error{
		d.Fill(private, 9, 100), d.Write(private+1, []byte{1, 2}), d.Copy(at, private, 4), d.Read(back, private),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []byte{9, 1, 2, 9}; !slices.Equal(back, want) || !slices.Equal(shared[:4], want) {
		t.Errorf("%v, and %v in shared memory, want %v", back, shared[:4], want)
	}
	if free, total, err := d.Memory(); err != nil || free != 3<<30 || total != 4<<30 {
		t.Errorf("memory %d of %d, %v", free, total, err)
	}
	if _, err := d.Alloc(1 << 40); err == nil || !strings.Contains(err.Error(), "OUT_OF_MEMORY") {
		t.Errorf("a terabyte: %v", err)
	}
	for _, err := range []error{d.Free(private), d.FreeShared(shared), d.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := d.Name(), "stand-in 7 (compute 9.0, 132 multiprocessors)"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
}

func TestGraph(t *testing.T) {
	d := standIn(t)
	from, err := d.Record()
	if err != nil {
		t.Fatal(err)
	}
	launched := false
	g, err := d.Capture(func() error { launched = true; return nil })
	if err != nil || !launched {
		t.Fatal(launched, err)
	}
	to, _ := d.Record()
	if took, err := to.Since(from); err != nil || took != 1500*time.Microsecond {
		t.Errorf("%v, %v, want 1.5ms", took, err)
	}
	for _, err := range []error{g.Launch(), g.Free(), from.Free(), to.Free()} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFaults(t *testing.T) {
	d := standIn(t)
	if _, err := d.Load(source(t), "nonsense", [4]uint32{}); err == nil || !strings.Contains(err.Error(), "line 3: nonsense") {
		t.Errorf("PTX that does not compile: %v", err)
	}
	f := loaded(t, d, "faulty")
	if err := d.Launch(f, [3]uint32{1, 1, 1}, 32, 0, make([]byte, 4), []Pointer{0, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Record(); err == nil || !strings.Contains(err.Error(), "ILLEGAL_ADDRESS") {
		t.Errorf("after a fault: %v", err)
	}
	if _, err := open("libno-such-driver.so"); err == nil || !strings.Contains(err.Error(), "no NVIDIA driver") {
		t.Errorf("without a driver: %v", err)
	}
}
