package download

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// digest computes the pinned digest of a file from its bytes in order. Its state
// between two bytes can be saved and gone on from.
type digest struct {
	hash.Hash
	kind string
}

// newDigest returns the digest of f before its first byte.
func newDigest(f File) digest {
	if f.SHA256 != "" {
		return digest{sha256.New(), "sha256"}
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	return digest{h, "git-sha1"}
}

// Digest returns the pinned digest with its kind: sha256:… or git-sha1:….
func (f File) Digest() string {
	if f.SHA256 != "" {
		return "sha256:" + f.SHA256
	}
	return "git-sha1:" + f.GitSHA1
}

// text returns the digest of the bytes so far, as File.Digest writes it.
func (d digest) text() string { return d.kind + ":" + hex.EncodeToString(d.Sum(nil)) }

// appendState appends the state after the bytes so far.
func (d digest) appendState(b []byte) []byte {
	b, err := d.Hash.(encoding.BinaryAppender).AppendBinary(b)
	if err != nil {
		panic("download: save the state of a digest: " + err.Error()) // the standard library's never fail
	}
	return b
}

// restore goes on from a saved state.
func (d digest) restore(state []byte) error {
	return d.Hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
}

// chain holds the states of a file's digest between its pieces. Each piece leads
// from the state before it to the state behind it, and the last to the digest
// itself, which no two contents do that anybody knows of. So every piece can be
// proved alone and beside others, and all of them together prove the digest of
// the file, whoever wrote the chain.
type chain []byte

// stateSize returns the length of one state of f's digest.
func stateSize(f File) int { return len(newDigest(f).appendState(nil)) }

// check says whether a chain fits a file of that many pieces.
func (c chain) check(f File, pieces int) error {
	if want := (pieces - 1) * stateSize(f); len(c) != want {
		return fmt.Errorf("states of %d bytes, want %d", len(c), want)
	}
	return nil
}

// before returns the digest of f with the bytes before piece i.
func (c chain) before(f File, i int) (digest, error) {
	d := newDigest(f)
	if i == 0 {
		return d, nil
	}
	return d, d.restore(c.state(f, i))
}

// state returns the state between pieces i-1 and i, i > 0.
func (c chain) state(f File, i int) []byte {
	n := stateSize(f)
	return c[(i-1)*n : i*n]
}

// leadsTo says whether d, which has the bytes of piece i too, is as the chain
// and, behind the last piece, the pinned digest want it.
func (c chain) leadsTo(f File, i, pieces int, d digest) bool {
	if i == pieces-1 {
		return strings.EqualFold(d.text(), f.Digest())
	}
	return string(d.appendState(nil)) == string(c.state(f, i+1))
}
