package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"calla/core/download/hubtest"
)

// BenchmarkPull pulls shards from a server of this process, and compares that in
// the same run with what bounds it: the same transfer without hashing, journal
// or receipt, and SHA-256 of the same bytes. The metric of-bound is the pull's
// rate by the slower of the two; at least 0.70 is wanted. All three take turns,
// so that they meet the same machine.
func BenchmarkPull(b *testing.B) {
	const total = 384 << 20
	for _, shards := range []int{1, 4} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			var files []hubtest.File
			for i := range shards {
				files = append(files, hubtest.File{Name: fmt.Sprintf("model-%d.safetensors", i), Content: hubtest.Random(uint64(i), total/shards)})
			}
			s := newSite(b, files...)
			s.Options.piece, s.Options.patience, s.Options.Connections, s.Progress = 0, patience{}, shards, nil
			var pull, bare, hash time.Duration
			b.SetBytes(total)
			for b.Loop() {
				pull += timed(func() { s.pullOnce(b) })
				b.StopTimer()
				bare += timed(func() { s.transferOnly(b) })
				hash += timed(func() {
					for _, f := range files {
						sha256.Sum256(f.Content)
					}
				})
				b.StartTimer()
			}
			rate := func(d time.Duration) float64 { return float64(b.N) * total / d.Seconds() / 1e6 }
			b.ReportMetric(rate(pull), "pull-MB/s")
			b.ReportMetric(rate(bare), "unhashed-MB/s")
			b.ReportMetric(rate(hash), "sha256-MB/s")
			b.ReportMetric(max(bare, hash).Seconds()/pull.Seconds(), "of-bound")
		})
	}
}

func timed(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

func (s *site) pullOnce(b *testing.B) {
	s.Folder = filepath.Join(b.TempDir(), "model")
	if _, err := Pull(context.Background(), s.Options); err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(s.Folder); err != nil {
		b.Fatal(err)
	}
}

// transferOnly brings the same files in the same way, a connection for each, and
// makes them as durable.
func (s *site) transferOnly(b *testing.B) {
	dir := b.TempDir()
	var g errgroup.Group
	for _, f := range s.Manifest.Files {
		g.Go(func() error {
			out, err := os.Create(filepath.Join(dir, f.Name))
			if err != nil {
				return err
			}
			defer out.Close()
			buf := make([]byte, readSize)
			for off := int64(0); off < f.Size; {
				end := min(off+maxRun*PieceSize, f.Size)
				if err := transferRange(s, f, out, buf, off, end); err != nil {
					return err
				}
				off = end
			}
			return out.Sync()
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
}

func transferRange(s *site, f File, out *os.File, buf []byte, off, end int64) error {
	o, err := newOrigin(s.Endpoint, s.Manifest)
	if err != nil {
		return err
	}
	q, err := http.NewRequest(http.MethodGet, o.url(f), nil)
	if err != nil {
		return err
	}
	q.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, end-1))
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	for off < end {
		n, err := io.ReadFull(r.Body, buf[:min(readSize, end-off)])
		if err != nil {
			return err
		}
		if _, err := out.WriteAt(buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// BenchmarkVerify hashes a shard again, by pieces side by side.
func BenchmarkVerify(b *testing.B) {
	const size = 128 << 20
	s := newSite(b, hubtest.File{Name: shard1, Content: hubtest.Random(1, size)})
	s.Options.piece = 0
	s.pull()
	b.SetBytes(size)
	for b.Loop() {
		if bad := s.verify(); len(bad) > 0 {
			b.Fatal(bad)
		}
	}
}

// BenchmarkCheck looks at a receipt of the pinned shape, as every start does.
func BenchmarkCheck(b *testing.B) {
	store, folder := NewStore(b.TempDir()), b.TempDir()
	folder, err := canonical(folder)
	if err != nil {
		b.Fatal(err)
	}
	m := Pinned()
	r := &Receipt{Folder: folder, Repository: m.Repository, Revision: m.Revision, Total: m.Bytes()}
	for _, f := range m.Files {
		path := filepath.Join(folder, f.Name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			b.Fatal(err)
		}
		if err := os.Truncate(path, f.Size); err != nil {
			b.Skipf("no files with holes here: %v", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		states := bytes.Repeat([]byte{7}, (pieces{f.Size, PieceSize}.count()-1)*stateSize(f))
		r.put(Proof{Name: f.Name, Digest: f.Digest(), stamp: stampOf(info), Origin: Fetched, Piece: PieceSize, States: states})
	}
	if err := store.save(r); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := store.Locate(m); err != nil {
			b.Fatal(err)
		}
	}
}
