package server

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"time"
)

// Receipt says what the files of the served model are, and how that is known.
// Where they lie is nobody's business but the machine's.
type Receipt struct {
	Source     Origin `json:"source"`
	Repository string `json:"repository,omitempty"` // owner/name, where the files are of one
	Revision   string `json:"revision,omitempty"`   // of the repository
	// Pinned: the program itself has the digests, and every file's matched.
	Pinned bool `json:"pinned"`
	// VerifiedAt is when a file was last hashed and found right. Since then its
	// size, time and place on the disk have not changed.
	VerifiedAt *time.Time `json:"verified_at,omitempty"`
	Files      int        `json:"files,omitempty"`
	Bytes      int64      `json:"bytes,omitempty"` // of all files
	// Digest is that of all files in one: see DigestOf.
	Digest string `json:"digest,omitempty"`
}

// Origin says where the files of a model are from.
type Origin string

// The origins. Of files that were never verified nothing is known but that the
// server could load them.
const (
	BuiltIn    Origin = "built in"
	Downloaded Origin = "downloaded"
	Found      Origin = "found" // another program had put them on the machine
	Unverified Origin = "unverified"
)

// DigestOf returns one digest of many files, given by name with the digest of
// each: the SHA-256 of their lines "DIGEST  NAME", sorted by name.
func DigestOf(files map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		io.WriteString(h, files[name]+"  "+name+"\n")
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
