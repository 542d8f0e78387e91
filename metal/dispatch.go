package metal

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Limits of Metal on every Apple GPU since Apple7.
const (
	maxThreads = 1024     // of a threadgroup
	maxShared  = 32 << 10 // bytes of threadgroup memory
	maxSlots   = 31       // buffers of a dispatch
	simdWidth  = 32
)

// Kernel is a kernel and the values of its function constants, by index: where it
// has none, zero. A device compiles each such pair for itself.
type Kernel struct {
	Name      string
	Constants [4]uint32
}

// String is the name with the constants behind it.
func (k Kernel) String() string {
	n := len(k.Constants)
	for n > 0 && k.Constants[n-1] == 0 {
		n--
	}
	if n == 0 {
		return k.Name
	}
	return k.Name + strings.ReplaceAll(fmt.Sprint(k.Constants[:n]), " ", ", ")
}

// named is a kernel without function constants.
func named(name string) Kernel { return Kernel{Name: name} }

// Dispatch is one launch of a kernel over a grid of threadgroups.
type Dispatch struct {
	Kernel  Kernel
	Args    []byte    // the kernel's argument struct, at buffer 0
	Buffers []Binding // at buffers 1 and on
	Grid    [3]uint32 // threadgroups
	Threads uint32    // of a threadgroup
	Shared  uint32    // bytes of threadgroup memory
	// Barrier says that it waits for all dispatches before it.
	Barrier bool
}

// Binding is a buffer from an offset in bytes on.
type Binding struct {
	Buffer *Buffer
	Offset int64
}

// List is the dispatches of one command buffer, in order.
type List struct{ Dispatches []Dispatch }

// Print writes a line for each dispatch: a bar where it waits, the kernel and its
// function constants, grid and threads, arguments as 32-bit words, buffers and offsets.
func (l *List) Print(w io.Writer) error {
	for i, d := range l.Dispatches {
		bar := " "
		if d.Barrier {
			bar = "|"
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%3d %s %-30s grid %d×%d×%d × %d", i, bar, d.Kernel, d.Grid[0], d.Grid[1], d.Grid[2], d.Threads)
		if d.Shared > 0 {
			fmt.Fprintf(&b, ", shared %d", d.Shared)
		}
		b.WriteString("  (")
		for at := 0; at < len(d.Args); at += 4 {
			fmt.Fprintf(&b, "%s%s", separator(at), word(d.Args[at:]))
		}
		b.WriteString(")  ")
		for at, binding := range d.Buffers {
			b.WriteString(separator(at) + binding.Buffer.Name)
			if binding.Offset != 0 {
				fmt.Fprintf(&b, "+%#x", binding.Offset)
			}
		}
		if _, err := fmt.Fprintln(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}

func separator(at int) string {
	if at == 0 {
		return ""
	}
	return ", "
}

// word prints an argument: small numbers are counts, all others floats.
func word(b []byte) string {
	v := binary.LittleEndian.Uint32(b)
	if v < 1<<24 {
		return fmt.Sprint(v)
	}
	return fmt.Sprint(float32frombits(v))
}

// Check says what in a dispatch no Apple GPU would take.
func (d *Dispatch) Check() error {
	switch {
	case d.Threads == 0 || d.Threads > maxThreads || d.Threads%simdWidth != 0:
		return fmt.Errorf("metal: %s: %d threads, want a multiple of %d, at most %d", d.Kernel, d.Threads, simdWidth, maxThreads)
	case d.Shared > maxShared || d.Shared%16 != 0:
		return fmt.Errorf("metal: %s: %d bytes of threadgroup memory, want a multiple of 16, at most %d", d.Kernel, d.Shared, maxShared)
	case len(d.Buffers)+1 > maxSlots:
		return fmt.Errorf("metal: %s: %d buffers, want at most %d", d.Kernel, len(d.Buffers)+1, maxSlots)
	case d.Grid[0] == 0 || d.Grid[1] == 0 || d.Grid[2] == 0:
		return fmt.Errorf("metal: %s: grid %v, want no empty side", d.Kernel, d.Grid)
	}
	for i, b := range d.Buffers {
		if b.Offset < 0 || b.Offset >= b.Buffer.Size {
			return fmt.Errorf("metal: %s: offset %d in buffer %d, %s of %d bytes", d.Kernel, b.Offset, i+1, b.Buffer.Name, b.Buffer.Size)
		}
	}
	return nil
}
