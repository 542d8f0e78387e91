package download

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// A file on its way lies beside its final name with a journal:
//
//	NAME.part      the bytes that arrived, each at its place
//	NAME.part.log  which bytes these are, a line for every write
//
// The journal promises nothing by itself: power may fail after its line is on
// the disk and before the bytes are. So each line has a checksum of the bytes,
// and whoever goes on from a journal reads them again.
const (
	partSuffix    = ".part"
	journalSuffix = ".part.log"
)

// prefix says that the first n bytes of a piece are there, and their CRC-32C.
type prefix struct {
	n   int64
	sum uint32
}

// journalHead returns the first line of a journal of f. By it a journal of
// another file or another form is told.
func journalHead(f File, piece int64) string {
	return fmt.Sprintf("calla part 1 %s %d %d\n", f.Digest(), f.Size, piece)
}

func journalLine(piece int, p prefix) string { return fmt.Sprintf("%d %d %08x\n", piece, p.n, p.sum) }

// parseJournal returns the longest prefix of each piece that a journal of f
// lists, and false for what is no journal of f.
func parseJournal(r io.Reader, f File, cut pieces) (got []prefix, ok bool) {
	lines := bufio.NewReader(r)
	if head, err := lines.ReadString('\n'); err != nil || head != journalHead(f, cut.piece) {
		return nil, false
	}
	got = make([]prefix, cut.count())
	for i, p := range journalLines(lines) {
		if i < 0 || i >= len(got) || p.n < 0 || p.n > cut.length(i) {
			break
		}
		if p.n >= got[i].n {
			got[i] = p
		}
	}
	return got, true
}

// journalLines returns the lines behind the first. The last may be torn; from a
// line that can't be read on they are ignored.
func journalLines(lines *bufio.Reader) iter.Seq2[int, prefix] {
	return func(yield func(int, prefix) bool) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if i, p, ok := parseLine(line); !ok || !yield(i, p) {
				return
			}
		}
	}
}

func parseLine(line string) (piece int, p prefix, ok bool) {
	_, err := fmt.Sscanf(line, "%d %d %x\n", &piece, &p.n, &p.sum)
	return piece, p, err == nil && line == journalLine(piece, p)
}

// readJournal reads the journal beside a final name. No journal, and one of
// another file, has no prefixes.
func readJournal(final string, f File, cut pieces) (got []prefix, ok bool, err error) {
	file, err := os.Open(final + journalSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return make([]prefix, cut.count()), false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	got, ok = parseJournal(file, f, cut)
	if !ok {
		got = make([]prefix, cut.count())
	}
	return got, ok, nil
}

// writeJournal replaces the journal beside a final name.
func writeJournal(final string, f File, cut pieces, got []prefix) error {
	var b strings.Builder
	b.WriteString(journalHead(f, cut.piece))
	for i, p := range got {
		if p.n > 0 {
			b.WriteString(journalLine(i, p))
		}
	}
	return replaceFile(final+journalSuffix, []byte(b.String()))
}

// removePart removes an unfinished file and then its journal, so that the one
// is never without the other.
func removePart(final string) error {
	for _, name := range []string{final + partSuffix, final + journalSuffix} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unfinished returns the final names in a folder that have a journal.
func unfinished(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var finals []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), journalSuffix); ok && isJournal(filepath.Join(folder, e.Name())) {
			finals = append(finals, filepath.Join(folder, name))
		}
	}
	return finals, nil
}

// unfinishedBytes returns how much of a file on its way is there, as its journal
// says.
func unfinishedBytes(final string) int64 {
	f, err := os.Open(final + journalSuffix)
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	if _, err := lines.ReadString('\n'); err != nil {
		return 0
	}
	most := map[int]int64{}
	for i, p := range journalLines(lines) {
		most[i] = max(most[i], p.n)
	}
	var n int64
	for _, m := range most {
		n += m
	}
	return n
}

// isJournal says whether a file is a journal of ours, of whatever file.
func isJournal(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const start = "calla part "
	head := make([]byte, len(start))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == start
}
