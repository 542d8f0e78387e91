package schema

import "calla/core/grammar/dfa"

// node is what a place in a schema admits: any of its alternatives.
type node struct {
	at *path
	// refers, where not nil, is the node that this one stands for.
	refers *node
	// any, where not nil, are nodes of which one is to be fitted.
	any []*node

	kinds     kind // of the values below; the parts that are not of them do not count
	constants []*value
	isConst   bool // only the constants

	strings stringNode
	numbers numberNode
	items   arrayNode
	members objectNode
}

type stringNode struct {
	min, max int        // characters; a negative max is no bound
	set      *dfa.Chars // nil: all; the bounds are in it
}

type numberNode struct{ low, high *dfa.Bound }

type arrayNode struct {
	first    []*node // prefixItems
	rest     *node   // nil: no more
	min, max int     // a negative max is no bound
}

type objectNode struct {
	list  []property
	extra *node // additionalProperties; nil: none
}

type property struct {
	name     string
	required bool
	node     *node
}

// fitsNothing reports whether a node plainly admits nothing.
func (n *node) fitsNothing() bool {
	return n.refers == nil && n.any == nil && n.kinds == 0 && len(n.constants) == 0
}

// each calls f with all nodes that n stands for, those within alternatives
// too, each once.
func (n *node) each(f func(*node)) {
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(n *node) {
		switch {
		case seen[n]:
			return
		case n.refers != nil:
			seen[n] = true
			walk(n.refers)
		case n.any != nil:
			seen[n] = true
			for _, one := range n.any {
				walk(one)
			}
		default:
			seen[n] = true
			f(n)
		}
	}
	walk(n)
}
