package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"calla/bundle/demo"
	"calla/core/checkpoint"
	"calla/core/download"
	"calla/core/server"
)

// receipt says what is known of the files that are served: those of a folder,
// or the built-in ones.
func (s *settings) receipt(o *opened) (server.Receipt, error) {
	if o.demo {
		return builtIn(demo.Source())
	}
	store, err := modelStore()
	if err != nil {
		return server.Receipt{}, err
	}
	r, err := store.Receipt(s.model)
	if errors.Is(err, fs.ErrNotExist) {
		return server.Receipt{Source: server.Unverified}, nil
	}
	if err != nil {
		return server.Receipt{}, err
	}
	return kept(r), nil
}

// kept is a receipt of the download's for the status. One that lacks some of
// the files vouches for nothing.
func kept(r *download.Receipt) server.Receipt {
	out := server.Receipt{
		Source: server.Found, Repository: r.Repository, Revision: r.Revision,
		Pinned: r.Complete(download.Pinned()), Files: len(r.Files),
	}
	if at := r.Verified(); !at.IsZero() {
		out.VerifiedAt = &at
	}
	digests := map[string]string{}
	for _, p := range r.Files {
		digests[p.Name] = p.Digest
		out.Bytes += p.Size
		if p.Origin == download.Fetched {
			out.Source = server.Downloaded
		}
	}
	if out.Bytes != r.Total {
		return server.Receipt{Source: server.Unverified}
	}
	out.Digest = server.DigestOf(digests)
	return out
}

// builtIn hashes the files of the program itself.
func builtIn(source checkpoint.Source) (server.Receipt, error) {
	out := server.Receipt{Source: server.BuiltIn}
	names, err := source.List()
	if err != nil {
		return out, err
	}
	digests := map[string]string{}
	for _, name := range names {
		n, digest, err := hashed(source, name)
		if err != nil {
			return out, fmt.Errorf("hash %s of the built-in model: %w", name, err)
		}
		digests[name] = "sha256:" + digest
		out.Files++
		out.Bytes += n
	}
	out.Digest = server.DigestOf(digests)
	return out, nil
}

func hashed(source checkpoint.Source, name string) (n int64, digest string, err error) {
	f, err := source.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err = io.Copy(h, io.NewSectionReader(f, 0, f.Size()))
	return n, hex.EncodeToString(h.Sum(nil)), err
}
