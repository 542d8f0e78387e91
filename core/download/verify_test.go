package download

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"calla/core/download/hubtest"
)

func TestVerify(t *testing.T) {
	span := func(pieces ...int64) []Span {
		var out []Span
		for _, i := range pieces {
			out = append(out, Span{i * testPiece, min((i+1)*testPiece, 20*testPiece+1)})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		change func(s *site)
		state  State // of shard 1
		spans  []Span
		asked  []string // ranges of shard 1 that the repair asks for
	}{
		{"nothing changed", func(s *site) {}, Right, nil, nil},
		{"a byte, the time as before", func(s *site) { s.damage(shard1, 3*testPiece) }, Wrong, span(3), []string{"bytes=30021-40027"}},
		{"two neighbours", func(s *site) { s.damage(shard1, 4*testPiece-1, 4*testPiece) }, Wrong, span(3, 4), []string{"bytes=30021-40027", "bytes=40028-50034"}},
		{"first and last piece", func(s *site) { s.damage(shard1, 0, 20*testPiece) }, Wrong, span(0, 20), []string{"bytes=0-10006", "bytes=200140-200140"}},
		{"a file cut short", func(s *site) { s.truncate(shard1, 19*testPiece+5) }, Wrong, span(19, 20), []string{"bytes=190133-200139", "bytes=200140-200140"}},
		{"an empty file", func(s *site) { s.truncate(shard1, 0) }, Wrong, span(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), nil},
		{"a file that grew", func(s *site) { s.truncate(shard1, 21*testPiece) }, Wrong, nil, nil},
		{"touched", func(s *site) { s.touch(shard1) }, Right, nil, nil},
		{"gone", func(s *site) { s.remove(shard1) }, Missing, nil, nil},
		{"a copy in its place", func(s *site) { s.rewrite(shard1, s.content(shard1)) }, Right, nil, nil},
		{"another file in its place", func(s *site) { s.rewrite(shard1, hubtest.Random(8, 20*testPiece+1)) }, Wrong,
			span(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), nil},
		{"a link that dangles", func(s *site) { s.remove(shard1); s.symlink("nowhere", shard1) }, Missing, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.pull()
			tt.change(s)
			bad := s.verify()
			if tt.state == Right {
				if len(bad) > 0 {
					t.Errorf("Verify finds %v, want nothing wrong", bad)
				}
			} else if len(bad) != 1 || bad[0].Name != shard1 || bad[0].State != tt.state || bad[0].Reason == "" || !slices.Equal(bad[0].Damaged, tt.spans) {
				t.Errorf("Verify finds %+v, want %s %s with %v", bad, shard1, tt.state, tt.spans)
			}
			if err := s.Store.Check(s.Folder); (err == nil) != (tt.state == Right) || err != nil && !errors.Is(err, ErrChanged) {
				t.Errorf("Check after Verify: %v, want it to agree", err)
			}
			s.hub.Forget()
			s.pull()
			got := s.asked(shard1)
			slices.Sort(got)
			slices.Sort(tt.asked)
			if tt.asked != nil && !slices.Equal(got, tt.asked) || tt.state == Right && len(got) > 0 {
				t.Errorf("the repair asks for %v, want %v", got, tt.asked)
			}
			if got := s.verify(); len(got) > 0 {
				t.Errorf("after the repair Verify finds %v", got)
			}
			if tt.name == "a copy in its place" {
				return // which is nothing of ours
			}
			s.origins(Fetched)
		})
	}
}

// TestVerifyWithoutReceipt: the whole file is hashed, and fetched again.
func TestVerifyWithoutReceipt(t *testing.T) {
	s := newSite(t)
	s.pull()
	s.damage(shard1, 5)
	if err := os.RemoveAll(s.Store.root); err != nil {
		t.Fatal(err)
	}
	bad := s.verify()
	if len(bad) != 1 || bad[0].State != Wrong || bad[0].Damaged != nil || !strings.Contains(bad[0].Reason, "digest sha256:") {
		t.Errorf("Verify finds %+v, want the digest of %s wrong", bad, shard1)
	}
	s.hub.Forget()
	s.hub.Misbehave(func(r *hubtest.Reply) {
		if r.Name == shard1 && s.right(shard1) {
			t.Error("the damaged file lost its place before the new one was proved")
		}
	})
	s.pull()
	if len(s.asked(shard1)) == 0 || len(s.asked(shard2)) > 0 {
		t.Errorf("asked for %v and %v, want all of the damaged file alone", s.asked(shard1), s.asked(shard2))
	}
}

// TestVerifyFoundCopy: a copy that somebody else put there is proved as well.
func TestVerifyFoundCopy(t *testing.T) {
	s := newSite(t)
	s.copyAll(s.Folder)
	if bad := s.verify(); len(bad) > 0 {
		t.Errorf("Verify finds %v", bad)
	}
	s.origins(Found)
	if got, err := s.Store.Locate(s.Manifest); err != nil {
		t.Errorf("Locate = %q, %v, want the copy", got, err)
	}
}

func TestVerifyNowhere(t *testing.T) {
	s := newSite(t)
	if _, err := Verify(context.Background(), s.Options); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Verify of no folder: %v, want that it does not exist", err)
	}
	if _, err := os.Stat(s.Store.root); err == nil {
		t.Error("Verify of no folder leaves a receipt")
	}
}

// TestBrokenReceipt: what can't be read proves nothing and stops nothing.
func TestBrokenReceipt(t *testing.T) {
	s := newSite(t)
	s.pull()
	folder, err := canonical(s.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Store.path(folder, receiptSuffix), []byte(`{"folder": "/x", "files": [{"name": "../../x"}]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Check(s.Folder); err == nil {
		t.Error("Check of a broken receipt: no error")
	}
	s.hub.Forget()
	s.pull()
	if got := s.hub.Requests(); len(got) > 0 {
		t.Errorf("files were fetched again: %v", got)
	}
}

// TestRepairOfShared: a file that has another name too is somebody else's as
// well, so the repair writes to a copy of its right pieces.
func TestRepairOfShared(t *testing.T) {
	s := newSite(t)
	s.pull()
	other := s.path(shard1) + ".mine"
	if err := os.Link(s.path(shard1), other); err != nil {
		t.Skipf("no second names here: %v", err)
	}
	s.damage(shard1, 7*testPiece)
	damaged, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	s.verify()
	s.hub.Forget()
	if _, err := Pull(context.Background(), s.Options); err != nil {
		t.Fatal(err)
	}
	if got := s.asked(shard1); len(got) != 1 {
		t.Errorf("the repair asks for %v, want one piece", got)
	}
	if now, err := os.ReadFile(other); err != nil || string(now) != string(damaged) {
		t.Errorf("the file's other name was written to (error %v)", err)
	}
	if !s.right(shard1) {
		t.Error("the file is not repaired")
	}
}

func (s *site) content(name string) []byte {
	for _, f := range s.contents() {
		if f.Name == name {
			return f.Content
		}
	}
	s.t.Fatalf("no file %s", name)
	return nil
}

func (s *site) copyAll(folder string) string {
	var names []string
	for _, f := range s.contents() {
		names = append(names, f.Name)
	}
	return s.copyTo(folder, names...)
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) truncate(name string, size int64) { s.must(os.Truncate(s.path(name), size)) }
func (s *site) remove(name string)               { s.must(os.Remove(s.path(name))) }

func (s *site) touch(name string) {
	now := time.Now().Add(time.Hour)
	s.must(os.Chtimes(s.path(name), now, now))
}

// rewrite puts another file in the place of one.
func (s *site) rewrite(name string, content []byte) {
	s.must(os.WriteFile(s.path(name)+".x", content, 0o666))
	s.must(os.Rename(s.path(name)+".x", s.path(name)))
}

func (s *site) symlink(to, name string) {
	if err := os.Symlink(to, s.path(name)); err != nil {
		s.t.Skipf("no links here: %v", err)
	}
}

func TestVerified(t *testing.T) {
	s := newSite(t)
	clock := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	s.now = func() time.Time { return clock }
	when := func() time.Time {
		t.Helper()
		r, err := s.Store.Receipt(s.Folder)
		s.must(err)
		return r.Verified()
	}
	pulled := clock
	s.pull()
	if got := when(); !got.Equal(pulled) {
		t.Errorf("after the pull: verified %v, want %v", got, pulled)
	}
	clock = clock.Add(time.Hour)
	s.pull()
	if got := when(); !got.Equal(pulled) {
		t.Errorf("after a pull that hashed nothing: verified %v, want %v", got, pulled)
	}
	s.verify()
	verified := clock
	if got := when(); !got.Equal(verified) {
		t.Errorf("after Verify: verified %v, want %v", got, verified)
	}
	clock = clock.Add(time.Hour)
	s.damage(shard1, 1)
	s.verify()
	if got := when(); !got.Equal(verified) {
		t.Errorf("after Verify found damage: verified %v, want %v as before", got, verified)
	}
	if got := (&Receipt{}).Verified(); !got.IsZero() {
		t.Errorf("a receipt of nothing: verified %v", got)
	}
}
