package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"calla/app/prefs"
	"calla/core/completion"
	"calla/core/engine"
)

// evaluation is what calla eval prints: for scripts that compare engines.
type evaluation struct {
	Tokens []int32  `json:"tokens"` // greedy
	Top    [][]rank `json:"top"`    // of each step, the ten largest logits, falling
}

// rank is a token and its logit, in JSON [id, logit].
type rank struct {
	id    int32
	logit float32
}

func (r rank) MarshalJSON() ([]byte, error) { return json.Marshal([]any{r.id, r.logit}) }

const topRanks = 10

func newEval() *cobra.Command {
	var s settings
	var tokens tokenIDs
	var steps int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval --tokens 1,2,3 --steps N",
		Short: "Feed token ids, print the greedy ids that follow",
		Long: "eval evaluates a prompt of token ids and decodes greedily, without queue, cache,\n" +
			"stop tokens or text. It is what scripts compare with other engines.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := evaluate(cmd, &s, tokens, steps)
			if err != nil {
				return err
			}
			return e.print(cmd.OutOrStdout(), asJSON)
		},
	}
	s.modelFlags(cmd)
	bind(cmd.Flags(), "prefill-chunk", &s.prefillChunk)
	cmd.Flags().Var(&tokens, "tokens", "token ids of the prompt, separated by commas")
	checked(cmd.Flags(), prefs.Preference{Key: "steps", Default: "16", Check: prefs.Whole(1, 1<<20), Help: "tokens to generate"}, &steps)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"tokens": […], "top": [[[id, logit], …], …]}`)
	if err := cmd.MarkFlagRequired("tokens"); err != nil {
		panic(err)
	}
	return cmd
}

// tokenIDs is a flag: token ids, separated by commas.
type tokenIDs []int32

func (t *tokenIDs) Type() string { return "ids" }

func (t *tokenIDs) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]int32(*t)), "[]"), " ", ",")
}

func (t *tokenIDs) Set(list string) error {
	var ids []int32
	for f := range strings.SplitSeq(list, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(f), 10, 32)
		if err != nil || id < 0 {
			return fmt.Errorf("%q, want token ids separated by commas", f)
		}
		ids = append(ids, int32(id))
	}
	*t = ids
	return nil
}

func evaluate(cmd *cobra.Command, s *settings, ids []int32, steps int) (*evaluation, error) {
	o, err := s.openBare()
	if err != nil {
		return nil, err
	}
	defer o.Close()
	turn := engine.Turn{EndOfTurn: -1, Newline: -1} // without a tokenizer no token ends a turn
	if o.tokenizer != nil {
		if _, turn, _, err = completion.EngineOptions(o.tokenizer, nil); err != nil {
			return nil, err
		}
	}
	m, unload, err := o.loader()(cmd.Context(), nil)
	if err != nil {
		return nil, err
	}
	defer unload()
	e := &evaluation{}
	err = engine.Evaluate(cmd.Context(), m, turn, s.prefillChunk, ids, steps, func(logits []float32, token int32) {
		e.Tokens = append(e.Tokens, token)
		e.Top = append(e.Top, largest(logits, topRanks))
	})
	return e, err
}

// largest returns the n largest logits, falling, of equals the lower id first.
func largest(logits []float32, n int) []rank {
	falling := func(a, b rank) int { return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id)) }
	var top []rank
	for i, x := range logits {
		r := rank{int32(i), x}
		if len(top) == n && falling(r, top[n-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, r, falling)
		top = slices.Insert(top, at, r)
		top = top[:min(n, len(top))]
	}
	return top
}

func (e *evaluation) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(e)
	}
	for i, id := range e.Tokens {
		if _, err := fmt.Fprintf(w, "%d\t%v\n", id, e.Top[i][0].logit); err != nil {
			return err
		}
	}
	return nil
}
