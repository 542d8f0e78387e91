package download

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"calla/core/download/hubtest"
)

// mountTmpfs makes a small disk of its own, which only root can.
func mountTmpfs(t *testing.T, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("needs root, to make a small disk: mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// TestDiskFull fills the disk when nine tenths of a shard are there. What has
// arrived stays, and the next pull goes on.
func TestDiskFull(t *testing.T) {
	const size = 3 << 20
	s := newSite(t, hubtest.File{Name: "config.json", Content: []byte("{}")}, hubtest.File{Name: shard1, Content: hubtest.Random(1, size)})
	disk := mountTmpfs(t, size*3/2)
	s.Folder = filepath.Join(disk, "model")
	s.Connections = 1
	ballast := filepath.Join(disk, "ballast")
	s.hub.Misbehave(faulty(func(n int, r *hubtest.Reply) {
		r.Before = func(sent int) {
			if int(r.Begin)+sent > size*8/10 {
				fill(t, ballast)
			}
		}
	}))
	_, err := Pull(context.Background(), s.Options)
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), shard1) {
		t.Errorf("Pull on a full disk: %v, want ErrNoSpace and the file's name", err)
	}
	s.provedOnly()
	if !s.right("config.json") {
		t.Error("the file that was complete is lost")
	}

	_, err = Pull(context.Background(), s.Options)
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "bytes are free, want") {
		t.Errorf("Pull with the disk still full: %v, want ErrNoSpace before anything is asked", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.hub.Misbehave(nil)
	s.hub.Forget()
	s.pull()
	for _, r := range s.asked(shard1) {
		var first int64
		fmt.Sscanf(r, "bytes=%d-", &first)
		if first < size/2 {
			t.Errorf("the next pull asks for %s, want only what was not there", r)
		}
	}
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return // full already
	}
	defer f.Close()
	block := make([]byte, 4<<10)
	for {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

// TestNoSpace is refused before the first byte, and leaves nothing.
func TestNoSpace(t *testing.T) {
	s := newSite(t)
	s.Folder = filepath.Join(mountTmpfs(t, 64<<10), "model")
	_, err := Pull(context.Background(), s.Options)
	if want := fmt.Sprintf("want %d", s.Manifest.Bytes()); !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), want) {
		t.Errorf("Pull to a disk too small: %v, want ErrNoSpace with %q", err, want)
	}
	if got := s.hub.Requests(); len(got) > 0 {
		t.Errorf("%d requests before the refusal", len(got))
	}
	if got := s.list(); len(got) > 0 {
		t.Errorf("the refused pull leaves %v", got)
	}
}

// TestReadOnlyVolume: what is complete there is verified and used; anything that
// would have to be written is refused before anything is asked for.
func TestReadOnlyVolume(t *testing.T) {
	s := newSite(t)
	disk := mountTmpfs(t, 4<<20)
	s.Folder = filepath.Join(disk, "model")
	s.copyTo(filepath.Join(disk, "some"), shard1)
	s.copyAll(s.Folder)
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if bad := s.verify(); len(bad) > 0 {
		t.Errorf("Verify finds %v", bad)
	}
	s.pull()
	if got := s.hub.Requests(); len(got) > 0 {
		t.Errorf("%d requests for what is there", len(got))
	}
	if _, err := s.Store.Locate(s.Manifest); err != nil {
		t.Errorf("Locate: %v", err)
	}
	for _, folder := range []string{"some", "none"} {
		s.Folder = filepath.Join(disk, folder)
		if _, err := Pull(context.Background(), s.Options); !errors.Is(err, syscall.EROFS) {
			t.Errorf("Pull to the read-only folder %s: %v, want EROFS", folder, err)
		}
	}
	if got := s.hub.Requests(); len(got) > 0 {
		t.Errorf("%d requests before the refusal", len(got))
	}
}

// TestFolderByAnotherName reaches one folder by two paths that no link connects,
// as disks allow that don't tell cases or forms of accents apart.
func TestFolderByAnotherName(t *testing.T) {
	s := newSite(t)
	s.pull()
	first, other := s.Folder, t.TempDir()
	if err := syscall.Mount(first, other, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("needs root, to mount a folder twice: %v", err)
	}
	defer syscall.Unmount(other, 0)
	s.Folder = other
	if r, err := s.Store.Receipt(other); err != nil || r.Folder != s.pull().Folder {
		t.Errorf("the receipt by the other path: %v, %v", r, err)
	}
	s.origins(Fetched)
	if all, err := s.Store.Receipts(); err != nil || len(all) != 1 {
		t.Errorf("%d receipts, error %v, want one", len(all), err)
	}
}
