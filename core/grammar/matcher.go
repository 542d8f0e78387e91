package grammar

import "fmt"

// Matcher reads one text of a grammar, token by token. It belongs to one
// goroutine.
type Matcher struct {
	automaton *Automaton
	at        *config
}

// Matcher returns a matcher at the start of a text.
func (a *Automaton) Matcher() *Matcher { return &Matcher{automaton: a, at: a.start} }

// Next reads a token. It fails where the grammar has no text that goes on so,
// and with ErrAmbiguous.
func (m *Matcher) Next(token int32) error {
	a := m.automaton
	v := a.vocabulary
	v.mu.Lock()
	defer v.mu.Unlock()
	next := m.at
	var err error
	if c, ok := v.controls[token]; ok {
		next, err = a.step(next, firstControl+c)
	} else if !v.isText.Has(token) {
		next = dead
	} else {
		for _, b := range v.bytes(token) {
			if next, err = a.step(next, int32(b)); err != nil {
				return err
			}
		}
	}
	if err == nil && next == dead {
		err = fmt.Errorf("grammar: token %d, which has no place here", token)
	}
	if err == nil {
		m.at = next
	}
	return err
}

// Allowed sets mask, which has a bit for each token of the vocabulary, to the
// tokens that may come next, the ones that end a completion among them where the
// text is complete.
func (m *Matcher) Allowed(mask Mask) error {
	a := m.automaton
	a.vocabulary.mu.Lock()
	defer a.vocabulary.mu.Unlock()
	set, err := a.allowed(m.at)
	if err != nil {
		return err
	}
	clear(mask)
	set.addTo(mask)
	return nil
}

// Complete reports whether the text may end here.
func (m *Matcher) Complete() bool { return m.at.ended }

// Over reports whether the text must end here.
func (m *Matcher) Over() bool { return m.at.ended && len(m.at.threads) == 0 }
