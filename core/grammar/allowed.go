package grammar

// allowed returns the tokens that may come in a config.
func (a *Automaton) allowed(c *config) (*tokenSet, error) {
	if c.allowed != nil {
		return c.allowed, nil
	}
	clear(a.mask)
	if err := a.collect(c); err != nil {
		return nil, err
	}
	set := kept(a.mask)
	a.words += len(set.many) + len(set.few)/2
	c.allowed = &set
	return c.allowed, nil
}

// collect adds to the mask the tokens that may come in a config.
func (a *Automaton) collect(c *config) error {
	v := a.vocabulary
	if c.ended {
		for _, t := range v.ends {
			a.mask.Add(t)
		}
	}
	others := false // threads outside of lexemes
	for _, t := range c.threads {
		switch i := &a.grammar.code[t.at]; i.op {
		case opLexeme:
			if err := a.collectLexeme(t); err != nil {
				return err
			}
		case opControl:
			a.mask.Add(v.ofToken[i.arg])
		default:
			others = true
		}
	}
	if !others {
		return nil
	}
	a.begin()
	for _, t := range c.threads {
		if a.grammar.code[t.at].op == opBytes {
			a.threads = append(a.threads, t)
		}
	}
	rest, err := a.settle()
	if err != nil {
		return err
	}
	return a.walk(rest, 0)
}

// collectLexeme adds the tokens of a thread within a lexeme: those that stay in
// it, and of those that leave it the ones that what comes after takes.
func (a *Automaton) collectLexeme(t thread) error {
	i := &a.grammar.code[t.at]
	x := a.grammar.lexemes[i.arg]
	l := a.vocabulary.local(x, t.place.state)
	l.addTo(a.mask, x, int(t.place.count))
	if len(l.leave) == 0 {
		return nil
	}
	a.begin()
	a.enter(i.out, t.stack)
	after, err := a.settle()
	if err != nil {
		return err
	}
	for _, leave := range l.leave {
		if !x.admits(int(t.place.count) + int(leave.length)) {
			continue
		}
		if err := a.walk(after, leave.node); err != nil {
			return err
		}
	}
	return nil
}

// walk adds the tokens below a node of the trie, at which the config is c.
func (a *Automaton) walk(c *config, top int32) error {
	v := a.vocabulary
	a.path[v.depth[top]] = c
	for node, end := top+1, v.after[top]; node < end; {
		depth := v.depth[node]
		next, err := a.step(a.path[depth-1], int32(v.label[node]))
		if err != nil {
			return err
		}
		if next == dead {
			node = v.after[node]
			continue
		}
		a.path[depth] = next
		for _, t := range v.tokensAt(node) {
			a.mask.Add(t)
		}
		node++
	}
	return nil
}
