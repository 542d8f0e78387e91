package main

import (
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Load commands that debug/macho leaves as bytes.
const (
	loadCodeSignature = 0x1d
	loadBuildVersion  = 0x32
	loadRunPath       = 0x8000001c
)

const platformMacOS = 1

// program is a Mach-O executable for arm64, in memory.
type program struct {
	data      []byte
	file      *macho.File
	text      *macho.Segment
	linkedit  command // __LINKEDIT's load command
	signature command // LC_CODE_SIGNATURE
	minimum   string  // version of macOS
	runPath   bool    // it has folders to look for libraries in
}

// command is a load command and where it stands in the file.
type command struct {
	at  int
	raw []byte
}

func parseProgram(data []byte) (*program, error) {
	f, err := macho.NewFile(strings.NewReader(string(data)))
	if err != nil {
		return nil, fmt.Errorf("the executable: %w", err)
	}
	p := &program{data: data, file: f}
	if f.Cpu != macho.CpuArm64 || f.Type != macho.TypeExec {
		return nil, fmt.Errorf("the executable is %v for %v, want a program for arm64", f.Type, f.Cpu)
	}
	at := 32 // after the header
	for _, l := range f.Loads {
		p.take(l, command{at, l.Raw()})
		at += len(l.Raw())
	}
	switch {
	case p.text == nil || p.linkedit.raw == nil:
		return nil, errors.New("the executable has no __TEXT or no __LINKEDIT")
	case p.signature.raw == nil:
		return nil, errors.New("the executable has no room for a signature: its linker made none")
	case p.minimum == "":
		return nil, errors.New("the executable is not for macOS")
	}
	return p, nil
}

func (p *program) take(l macho.Load, c command) {
	if s, ok := l.(*macho.Segment); ok {
		switch s.Name {
		case "__TEXT":
			p.text = s
		case "__LINKEDIT":
			p.linkedit = c
		}
	}
	switch order := binary.LittleEndian; order.Uint32(c.raw) {
	case loadCodeSignature:
		p.signature = c
	case loadRunPath:
		p.runPath = true
	case loadBuildVersion:
		if order.Uint32(c.raw[8:]) == platformMacOS {
			v := order.Uint32(c.raw[12:])
			p.minimum = fmt.Sprintf("%d.%d", v>>16, v>>8&0xff)
		}
	}
}

// place is where the signature is: it is last in the file.
func (p *program) place() (offset, size int) {
	return int(binary.LittleEndian.Uint32(p.signature.raw[8:])), int(binary.LittleEndian.Uint32(p.signature.raw[12:]))
}

// makeRoom has the file end with size bytes for a signature, and says so in the
// load commands.
func (p *program) makeRoom(size int) {
	order := binary.LittleEndian
	offset, _ := p.place()
	p.data = append(p.data[:offset:offset], make([]byte, size)...)
	order.PutUint32(p.data[p.signature.at+12:], uint32(size))
	// __LINKEDIT goes to the end of the file: in memory by whole pages of 16 KiB.
	from := order.Uint64(p.linkedit.raw[40:])
	length := uint64(len(p.data)) - from
	order.PutUint64(p.data[p.linkedit.at+48:], length)
	order.PutUint64(p.data[p.linkedit.at+32:], (length+0x3fff)&^0x3fff)
}

// libraries are what the program is linked to.
func (p *program) libraries() ([]string, error) { return p.file.ImportedLibraries() }
