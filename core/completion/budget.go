package completion

// thinkBudget closes the think block when the thought has had its tokens.
type thinkBudget struct {
	budget int     // 0 is no bound
	close  []int32 // what closes the block
}

// forced returns the token that must come after so many, if there is one. The
// thought must not have ended before its budget.
func (b *thinkBudget) forced(generated int) (token int32, ok bool) {
	i := generated - b.budget
	if b.budget == 0 || i < 0 || i >= len(b.close) {
		return 0, false
	}
	return b.close[i], true
}
