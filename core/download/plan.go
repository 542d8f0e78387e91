package download

// plan says which pieces are missing and who fetches which. It only decides;
// its user locks it and acts.
//
// The hashing of a file goes on in order, so whoever comes first takes a file
// that nobody works on, and its first missing pieces. Runs are long while much
// is missing and short near the end, so that all end at about the same time.
type plan struct {
	files   []*filePlan
	workers int
}

type filePlan struct {
	owner []*claim // of each piece: who fetches it
	have  []bool
	// whole: the server sends this file from its first byte on or not at all, so
	// that only one worker can get anything done.
	whole bool
}

// claim is a run of pieces of one file that one worker fetches, in order.
type claim struct {
	file      int
	next, end int // pieces: the one being fetched, the end of the run
}

// maxRun is the most pieces of one claim: a request costs about two round trips
// to far servers, little beside 256 MiB.
const maxRun = 16

func newFilePlan(pieces int) *filePlan {
	return &filePlan{owner: make([]*claim, pieces), have: make([]bool, pieces)}
}

// missing returns how many pieces nobody has or fetches.
func (f *filePlan) missing() int {
	n := 0
	for i := range f.have {
		if f.free(i) {
			n++
		}
	}
	return n
}

func (f *filePlan) free(i int) bool { return !f.have[i] && f.owner[i] == nil }

// claims returns who works on the file.
func (f *filePlan) claims() map[*claim]bool {
	all := map[*claim]bool{}
	for _, c := range f.owner {
		if c != nil {
			all[c] = true
		}
	}
	return all
}

// complete says whether the file's pieces are all there.
func (f *filePlan) complete() bool {
	for _, have := range f.have {
		if !have {
			return false
		}
	}
	return true
}

// claim gives a worker something to do, or nil where there is nothing now.
func (p *plan) claim() *claim {
	best, fewest, missing := -1, 0, 0
	for i, f := range p.files {
		n, busy := f.missing(), len(f.claims())
		missing += n
		if n == 0 || f.whole && busy > 0 {
			continue
		}
		if best < 0 || busy < fewest {
			best, fewest = i, busy
		}
	}
	if best < 0 {
		return p.steal()
	}
	run := min(max(missing/(2*p.workers), 1), maxRun)
	f := p.files[best]
	if f.whole {
		run = len(f.have)
	}
	return f.take(best, run)
}

// take claims the first free pieces: those that follow each other, or of a file
// that comes whole all.
func (f *filePlan) take(file, run int) *claim {
	first := 0
	for !f.free(first) {
		first++
	}
	c := &claim{file: file, next: first, end: first}
	for i := first; i < len(f.have) && i < first+run; i++ {
		if f.free(i) {
			f.owner[i] = c
			c.end = i + 1
		} else if !f.whole {
			break
		}
	}
	return c
}

// steal takes the second half of the longest run that somebody else has hardly
// begun: one slow connection must not hold up the end.
func (p *plan) steal() *claim {
	var victim *claim
	for _, f := range p.files {
		if f.whole {
			continue
		}
		for c := range f.claims() {
			if rest := c.end - c.next; rest > 1 && (victim == nil || rest > victim.end-victim.next) {
				victim = c
			}
		}
	}
	if victim == nil {
		return nil
	}
	f := p.files[victim.file]
	middle := victim.end - (victim.end-victim.next)/2
	c := &claim{file: victim.file, next: middle, end: victim.end}
	for i := middle; i < victim.end; i++ {
		f.owner[i] = c
	}
	victim.end = middle
	return c
}

// got notes that the piece a claim was at is there, and moves the claim on. It
// reports false where the claim is at its end.
func (p *plan) got(c *claim) bool {
	f := p.files[c.file]
	f.have[c.next], f.owner[c.next] = true, nil
	for c.next++; c.next < c.end; c.next++ {
		if f.whole && f.free(c.next) {
			f.owner[c.next] = c // given back by one who can't get it
		}
		if f.owner[c.next] == c {
			return true
		}
	}
	return false
}

// release gives back what a claim did not get.
func (p *plan) release(c *claim) {
	for i, o := range p.files[c.file].owner {
		if o == c {
			p.files[c.file].owner[i] = nil
		}
	}
	c.end = c.next
}

// comesWhole notes that the server sent a file from its first byte on, wherever
// it was asked to begin. It says whether the claim may go on, and then gives it
// all that nobody has; otherwise the claim is released, because another
// connection already brings the file.
func (p *plan) comesWhole(c *claim, fromFirst bool) bool {
	f := p.files[c.file]
	f.whole = true
	if !fromFirst && len(f.claims()) > 1 {
		p.release(c)
		return false
	}
	c.end = len(f.have)
	for i := c.next; i < c.end; i++ {
		if f.free(i) {
			f.owner[i] = c
		}
	}
	return true
}

// forget makes all pieces of a file missing.
func (p *plan) forget(file int) {
	f := p.files[file]
	for i := range f.have {
		f.have[i], f.owner[i] = false, nil
	}
}

// complete says whether every file's pieces are all there.
func (p *plan) complete() bool {
	for _, f := range p.files {
		if !f.complete() {
			return false
		}
	}
	return true
}
