package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"calla/app/bench"
	"calla/app/whole"
)

// written is what a measurement can be written as.
type written interface {
	Measured() bool
	Print(io.Writer) error
	WriteCSV(io.Writer) error
	WritePicture(w io.Writer, format string) error
}

// errNothing is a measurement in which no length has numbers.
var errNothing = errors.New("bench: no length has numbers, want at least one: the reasons stand below the table")

// finish writes what was measured, an interrupt or not, and returns how the
// command ends.
func (b *benchFlags) finish(ctx context.Context, out io.Writer, r written) error {
	if err := b.write(ctx, out, r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Canceled
	}
	if !r.Measured() {
		return errNothing
	}
	return nil
}

// write prints a measurement and makes the files that were asked for, unless it
// was interrupted before it had anything to put in place of older ones.
func (b *benchFlags) write(ctx context.Context, out io.Writer, r written) error {
	show := r.Print
	if b.json {
		show = func(w io.Writer) error { return printJSON(w, r) }
	}
	err := show(out)
	if ctx.Err() != nil && !r.Measured() {
		return err
	}
	if b.csv != "" {
		err = errors.Join(err, whole.Write(b.csv, 0o666, r.WriteCSV))
	}
	if b.picture != "" {
		draw := func(w io.Writer) error { return r.WritePicture(w, pictureFormat(b.picture)) }
		err = errors.Join(err, whole.Write(b.picture, 0o666, draw))
	}
	return err
}

// checkFiles refuses files that can't be written: better now than after hours of
// measuring.
func (b *benchFlags) checkFiles() error {
	if format := pictureFormat(b.picture); b.picture != "" && !slices.Contains(bench.PictureFormats, format) {
		return fmt.Errorf("--picture is %q, want a name that ends with .%s", b.picture, strings.Join(bench.PictureFormats, " or ."))
	}
	for _, name := range []string{b.csv, b.picture} {
		if name == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(name)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s: its folder does not exist, want one that does", name)
		}
		if err := whole.Check(name); err != nil {
			return fmt.Errorf("%w, want a file that can be written", err)
		}
	}
	if b.csv != "" && b.picture != "" && sameFile(b.csv, b.picture) {
		return fmt.Errorf("--csv and --picture are both %s, want two files", b.csv)
	}
	return nil
}

// sameFile reports whether two names, in folders that exist, are one file's.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	if errX == nil || errY == nil || filepath.Base(a) != filepath.Base(b) {
		return false
	}
	x, errX = os.Stat(filepath.Dir(a))
	y, errY = os.Stat(filepath.Dir(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func pictureFormat(name string) string {
	return strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")
}
