package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"calla/core/download"
)

// modelFiles are the flags of the commands that work on the downloaded model.
type modelFiles struct {
	dir      string
	manifest string
	asJSON   bool
}

func (m *modelFiles) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	bind(f, "dir", &m.dir)
	f.StringVar(&m.manifest, "manifest", "", "file that pins other files than those of the model (for tests and mirrors)")
	f.BoolVar(&m.asJSON, "json", false, "print JSON")
}

// options returns what all work on the model's files needs. Where nobody named a
// folder it is the one that a pull was begun in, wherever that is.
func (m *modelFiles) options() (download.Options, error) {
	manifest, err := readManifest(m.manifest)
	if err != nil {
		return download.Options{}, usageError{err}
	}
	store, err := modelStore()
	if err != nil {
		return download.Options{}, err
	}
	o := download.Options{Manifest: manifest, Store: store, Folder: m.dir, UserAgent: "calla/" + version}
	if o.Folder == "" {
		o.Folder, err = begunFolder(store, manifest)
	}
	return o, err
}

// modelStore is where the receipts are.
func modelStore() (download.Store, error) {
	f, err := findFolders()
	if err != nil {
		return download.Store{}, err
	}
	return download.NewStore(f.data), nil
}

// begunFolder returns the folder that has files of m, or is to have them.
func begunFolder(s download.Store, m download.Manifest) (string, error) {
	all, err := s.Receipts()
	if err != nil {
		return "", err
	}
	for _, r := range all {
		if _, err := os.Stat(r.Folder); err == nil && r.Repository == m.Repository && r.Revision == m.Revision {
			return r.Folder, nil
		}
	}
	return s.Folder(m), nil
}

// locateModel returns the folder of the downloaded model, whole and unchanged
// since it was verified. It takes milliseconds.
func locateModel() (string, error) {
	s, err := modelStore()
	if err != nil {
		return "", err
	}
	folder, err := s.Locate(download.Pinned())
	return folder, advised(err)
}

// checkModel refuses a folder whose files changed since they were verified. One
// that was never verified passes.
func checkModel(folder string) error {
	s, err := modelStore()
	if err != nil {
		return err
	}
	return advised(s.Check(folder))
}

// advised adds to an error of the download what people can do about it.
func advised(err error) error {
	for _, a := range []struct {
		is     error
		advice string
	}{
		{download.ErrPage, "log in to the network in a browser, then pull again"},
		{download.ErrNoSpace, "free some, or choose another folder with --dir; what has arrived is kept"},
		{download.ErrChanged, "calla verify says what is wrong, and calla pull mends it"},
		{download.ErrNotFound, "calla pull downloads it"},
		{download.ErrBusy, "wait for it, or stop it"},
	} {
		if errors.Is(err, a.is) {
			return fmt.Errorf("%w; %s", err, a.advice)
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w; a proxy that looks into connections needs its certificate among those that this system trusts", err)
	}
	return err
}

func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
