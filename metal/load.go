package metal

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"calla/core/backend"
	"calla/core/checkpoint"
)

const (
	// pieceBytes is about how much of the checkpoint one job reads: large enough
	// for a disk's full speed, small enough to be cancelled at once.
	pieceBytes = 8 << 20
	// readers is the most jobs at once.
	readers = 8
)

// source is matrices whose rows come in turn: one matrix, or gate and up.
type source []backend.Quantised

func (s source) rows() int { return len(s) * stackRows(s[0]) }

// jobs cuts the source into pieces of whole tiles, the first at an offset.
func (s source) jobs(offset int64) []job {
	q := s[0]
	tile := int64(tileBytes(q.In, q.Bits))
	all := ceil(s.rows(), tileRows)
	step := max(1, int(pieceBytes/tile))
	var out []job
	for lo := 0; lo < all; lo += step {
		hi := min(lo+step, all)
		rows := min(hi*tileRows, s.rows()) - lo*tileRows
		out = append(out, job{
			from: offset + int64(lo)*tile, to: offset + int64(hi)*tile,
			reads: int64(rows) * s.rowBytes(),
			run:   func(dst []byte, st *staging) error { return s.pack(dst, st, lo*tileRows, rows) },
		})
	}
	return out
}

// rowBytes returns what a row takes in the checkpoint.
func (s source) rowBytes() int64 {
	return int64(s[0].In*s[0].Bits/8 + 2*2*s[0].In/groupColumns)
}

// pack reads rows from row first on and lays them out.
func (s source) pack(dst []byte, st *staging, first, rows int) error {
	n := len(s)
	columns, bits := s[0].In, s[0].Bits
	codes, params := columns*bits/8, 2*columns/groupColumns
	var all [2][3][]byte
	for i, q := range s {
		lo, count := first/n, rows/n
		for j, x := range []struct {
			w      checkpoint.Weight
			stride int
		}{{q.Weight, codes}, {q.Scales, params}, {q.Biases, params}} {
			all[i][j] = st.bytes(3*i+j, count*x.stride)
			if err := read(x.w, all[i][j], int64(lo)*int64(x.stride)); err != nil {
				return err
			}
		}
	}
	size := tileBytes(columns, bits)
	for t := 0; t*tileRows < rows; t++ {
		var four [tileRows]rowBytes
		for r := range min(tileRows, rows-t*tileRows) {
			from, at := all[(t*tileRows+r)%n], (t*tileRows+r)/n
			four[r] = rowBytes{from[0][at*codes:][:codes], from[1][at*params:][:params], from[2][at*params:][:params]}
		}
		packTile(dst[t*size:], four, columns, bits)
	}
	return nil
}

// staging is the memory that one reader reads into.
type staging struct{ pieces [7][]byte }

// bytes returns piece i, n long.
func (s *staging) bytes(i, n int) []byte {
	if cap(s.pieces[i]) < n {
		s.pieces[i] = make([]byte, n)
	}
	return s.pieces[i][:n]
}

func read(w checkpoint.Weight, p []byte, off int64) error {
	if _, err := w.ReadAt(p, off); err != nil {
		return fmt.Errorf("metal: read %s of %s: %w", w.Name, w.Shard, err)
	}
	return nil
}

func putFloat(dst []byte, x float32) { binary.LittleEndian.PutUint32(dst, math.Float32bits(x)) }

// load runs all jobs, several at once. progress is called by one goroutine.
func (p *plan) load(ctx context.Context, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work, finished := make(chan func(*staging)), make(chan int64)
	var failed atomic.Bool
	var workers sync.WaitGroup
	for range min(readers, 2*runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			var st staging
			for run := range work {
				run(&st)
			}
		})
	}
	go func() {
		defer close(finished)
		defer workers.Wait()
		defer close(work)
		p.each(func(to Binding, j job) bool {
			if ctx.Err() != nil || failed.Load() {
				return false
			}
			work <- func(st *staging) {
				if err := p.fill(to, j, st); err != nil {
					failed.Store(true)
					cancel(err)
					return
				}
				finished <- j.reads
			}
			return true
		})
	}()
	var done int64
	for n := range finished {
		done += n
		if progress != nil {
			progress(done, p.total)
		}
	}
	return context.Cause(ctx)
}

// fill runs a job, in the buffer itself where the processor sees it.
func (p *plan) fill(to Binding, j job, st *staging) error {
	n := j.to - j.from
	if to.Buffer.Bytes != nil {
		return j.run(to.Buffer.Bytes[to.Offset:][:n], st)
	}
	made := st.bytes(len(st.pieces)-1, int(n))
	if err := j.run(made, st); err != nil {
		return err
	}
	return send(p.w.device.driver, to, made)
}

// each calls f for every job until it says false.
func (p *plan) each(f func(to Binding, j job) bool) {
	for i, s := range p.sections {
		for _, x := range s.parts {
			for _, j := range x.jobs {
				if !f(p.w.buffers[i].at(x.offset+j.from), j) {
					return
				}
			}
		}
	}
}
