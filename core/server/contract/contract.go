// Package contract checks from outside whether a server keeps what Calla
// promises of its API: OpenAI's chat completions, completions and responses,
// Anthropic's messages, strict errors and a local-only guard.
//
// It knows nothing of how a server is made and speaks HTTP to it, so any server
// can be checked and compared. A check is a request or a few and what is wanted
// of the answer. What a server does not have is skipped and not failed, with
// the reason; what it has must be right. Checks ask for answers of few tokens
// and take the model as it is: none depends on what a model knows.
package contract

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Target is the server to check.
type Target struct {
	URL   string // of its root, or of the API below it: /v1 at the end is cut off
	Key   string // sent with each request; empty sends none
	Model string // empty is the first of those that the server lists
}

// Outcome is how a check ended.
type Outcome string

// The outcomes of a check.
const (
	Pass Outcome = "pass"
	Fail Outcome = "fail"
	Skip Outcome = "skip" // the server does not have what is checked
)

// Result is one check and how it ended.
type Result struct {
	Area    string  `json:"area"`
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // of Fail and Skip
	Seconds float64 `json:"seconds"`
}

// check is one line of the table.
type check struct {
	area, name string
	// run returns nil where the server is right, a skipped where it has not what
	// is checked, and else what it was and what was wanted.
	run func(*session) error
}

// skipped is the reason why a check says nothing of this server.
type skipped string

func (s skipped) Error() string { return string(s) }

// checkTime bounds one check. Large models on small machines take long to
// answer.
const checkTime = 5 * time.Minute

// Run checks a server and reports each result when it is there. It returns an
// error where nothing can be checked at all.
func Run(ctx context.Context, t Target, report func(Result)) error {
	s, err := open(ctx, t)
	if err != nil {
		return err
	}
	for _, c := range table() {
		if err := ctx.Err(); err != nil {
			return err
		}
		report(s.result(ctx, c))
	}
	return nil
}

// table lists all checks, in the order in which they run.
func table() []check {
	var all []check
	for _, part := range [][]check{
		modelChecks(), chatChecks(), contentChecks(), defaultChecks(), streamChecks(), thinkingChecks(), toolChecks(),
		completionChecks(), responsesChecks(), messagesChecks(), tokenChecks(), operatorChecks(),
		wireChecks(), refusalChecks(), fieldChecks(), pathChecks(), guardChecks(), keyChecks(),
	} {
		all = append(all, part...)
	}
	return all
}

// open makes a session and finds the model to ask for.
func open(ctx context.Context, t Target) (*session, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("contract: %q is no address, want one as http://127.0.0.1:11535", t.URL)
	}
	s := &session{
		root: u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1"),
		host: u.Host, plain: u.Scheme == "http", key: t.Key, model: t.Model,
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	if s.model != "" {
		return s, nil
	}
	s.ctx = ctx
	ids, err := s.models()
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	s.model = ids[0]
	return s, nil
}

func (s *session) result(ctx context.Context, c check) Result {
	timed, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	one := *s
	one.ctx = timed
	begin := time.Now()
	err := c.run(&one)
	r := Result{Area: c.area, Name: c.name, Outcome: Pass, Seconds: time.Since(begin).Seconds()}
	var skip skipped
	switch {
	case errors.As(err, &skip):
		r.Outcome, r.Reason = Skip, err.Error()
	case err != nil:
		r.Outcome, r.Reason = Fail, err.Error()
	}
	return r
}

// Counts returns how many results there are of each outcome.
func Counts(all []Result) map[Outcome]int {
	n := map[Outcome]int{}
	for _, r := range all {
		n[r.Outcome]++
	}
	return n
}
