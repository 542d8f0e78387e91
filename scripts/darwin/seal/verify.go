package main

import (
	"bytes"
	"crypto/sha256"
	"debug/macho"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// verify looks at everything that the seal is about, and at what the executable
// asks of a system. It returns what it saw.
func (b *bundle) verify() (string, error) {
	resources, err := os.ReadFile(b.resourcesFile())
	if err != nil {
		return "", fmt.Errorf("not sealed: %w", err)
	}
	files, err := b.verifyFiles(resources)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(b.executable)
	if err != nil {
		return "", err
	}
	p, err := parseProgram(data)
	if err != nil {
		return "", err
	}
	if err := b.verifyTarget(p); err != nil {
		return "", err
	}
	d, err := b.verifySignature(p, resources)
	if err != nil {
		return "", err
	}
	signer := "a certificate"
	if d.Flags&flagAdhoc != 0 {
		signer = "nobody (ad hoc)"
	}
	return fmt.Sprintf("%s: signed by %s, hardened runtime, macOS %s and later, %d pages, %d files, cdhash %x\n",
		d.id, signer, p.minimum, len(d.pages), files, d.sum[:20]), nil
}

// verifyFiles compares the files with their list, and counts them.
func (b *bundle) verifyFiles(resources []byte) (int, error) {
	fresh, err := b.codeResources()
	if err != nil {
		return 0, err
	}
	sealed, err := digests(resources)
	if err != nil {
		return 0, fmt.Errorf("CodeResources: %w", err)
	}
	now, err := digests(fresh)
	if err != nil {
		return 0, err
	}
	for name, sum := range now {
		switch was, ok := sealed[name]; {
		case !ok:
			return 0, fmt.Errorf("%s was added after the seal", name)
		case was != sum:
			return 0, fmt.Errorf("%s was changed after the seal", name)
		}
	}
	for name := range sealed {
		if _, ok := now[name]; !ok {
			return 0, fmt.Errorf("%s is sealed and missing", name)
		}
	}
	return len(now), nil
}

// verifyTarget wants a program for the systems that Info.plist promises, that
// needs nothing but what every one of them has.
func (b *bundle) verifyTarget(p *program) error {
	if p.minimum != b.minimum {
		return fmt.Errorf("the executable needs macOS %s, Info.plist says %s", p.minimum, b.minimum)
	}
	switch {
	case p.runPath:
		return errors.New("the executable looks for libraries in folders of its own")
	case p.file.Flags&macho.FlagPIE == 0:
		return errors.New("the executable can be loaded at one address only")
	}
	libraries, err := p.libraries()
	if err != nil {
		return err
	}
	framework := "/System/Library/Frameworks/" + b.links + ".framework/"
	if b.links != "" && !slices.ContainsFunc(libraries, func(l string) bool { return strings.HasPrefix(l, framework) }) {
		return fmt.Errorf("the executable is not linked to %s: it was built without what needs it", b.links)
	}
	for _, l := range libraries {
		if !strings.HasPrefix(l, "/usr/lib/") && !strings.HasPrefix(l, "/System/Library/") {
			return fmt.Errorf("the executable needs %s, which is no part of the system", l)
		}
	}
	return nil
}

// verifySignature compares the executable's pages and what else is bound with
// their digests.
func (b *bundle) verifySignature(p *program, resources []byte) (*directory, error) {
	offset, size := p.place()
	if offset+size > len(p.data) {
		return nil, errSignature
	}
	d, err := parseDirectory(p.data[offset : offset+size])
	if err != nil {
		return nil, err
	}
	switch {
	case d.id != b.id:
		return nil, fmt.Errorf("signed as %s, Info.plist says %s", d.id, b.id)
	case d.Flags&flagRuntime == 0:
		return nil, fmt.Errorf("signed without the hardened runtime (flags %#x)", d.Flags)
	case int(d.CodeLimit) != offset || d.PageSize != pageBits:
		return nil, fmt.Errorf("the signature is for %d bytes, the code has %d", d.CodeLimit, offset)
	}
	for i, want := range d.pages {
		from := i << pageBits
		sum := sha256.Sum256(p.data[min(from, offset):min(from+1<<pageBits, offset)])
		if !bytes.Equal(sum[:], want) {
			return nil, fmt.Errorf("page %d of the executable was changed after the seal", i)
		}
	}
	if len(d.pages)<<pageBits < offset {
		return nil, fmt.Errorf("the signature has %d pages, too few for the code", len(d.pages))
	}
	for slot, of := range map[int]struct {
		name    string
		content []byte
	}{slotInfo: {"Info.plist", b.info}, slotResources: {"CodeResources", resources}} {
		if sum := sha256.Sum256(of.content); !bytes.Equal(sum[:], d.slots[slot]) {
			return nil, fmt.Errorf("%s was changed after the seal", of.name)
		}
	}
	return d, nil
}
