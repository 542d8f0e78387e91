package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
)

// seal writes CodeResources, and signs the executable ad hoc with the hardened
// runtime, bound to Info.plist and CodeResources.
func (b *bundle) seal() error {
	resources, err := b.codeResources()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.resourcesFile()), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(b.resourcesFile(), resources, 0o644); err != nil {
		return err
	}
	data, err := os.ReadFile(b.executable)
	if err != nil {
		return err
	}
	p, err := parseProgram(data)
	if err != nil {
		return err
	}
	offset, _ := p.place()
	p.makeRoom(signatureSize(b.id, offset))
	copy(p.data[offset:], sign(b.id, p.data[:offset], map[int][]byte{
		slotInfo: b.info, slotRequirements: requirements, slotResources: resources,
	}, p.text.Filesz, p.sdk()))
	// Written beside and renamed: a Mac that has run the old one remembers its
	// pages by the file.
	fresh := b.executable + ".sealed"
	if err := os.WriteFile(fresh, p.data, 0o755); err != nil {
		return err
	}
	return os.Rename(fresh, b.executable)
}

// sdk is the version of the SDK that the program was made with, as load
// commands write it: by it the system knows what the hardened runtime means.
func (p *program) sdk() uint32 {
	for _, l := range p.file.Loads {
		if raw := l.Raw(); binary.LittleEndian.Uint32(raw) == loadBuildVersion {
			return binary.LittleEndian.Uint32(raw[16:])
		}
	}
	return 0
}
