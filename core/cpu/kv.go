package cpu

// pageTokens is how many tokens a page of the KV cache holds. Memory grows by
// pages; no key block crosses one.
const pageTokens = 1024

// kvCache holds the keys and values of the full-attention layers.
//
//	pages  [tokens / pageTokens, layers], each [2, KV heads, pageTokens, head dim]
//	       cells: keys, then values
type kvCache struct {
	layers, heads, dim int
	rounding           Rounding
	tokens             int // how many are stored
	pages              [][]region
}

func (c *kvCache) pageBytes() int {
	return 2 * c.heads * pageTokens * c.dim * c.rounding.cell()
}

// grow makes room for tokens tokens. On error the cache is as it was, or larger.
func (c *kvCache) grow(tokens int) error {
	for len(c.pages)*pageTokens < tokens {
		row := make([]region, c.layers)
		for i := range row {
			r, err := newRegion(c.pageBytes())
			if err != nil {
				freeAll(row)
				return err
			}
			row[i] = r
		}
		c.pages = append(c.pages, row)
	}
	return nil
}

// freeAll frees regions and returns the first error.
func freeAll(row []region) error {
	var first error
	for i := range row {
		if err := row[i].free(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// cut forgets all but the first tokens and gives back the pages behind them.
func (c *kvCache) cut(tokens int) error {
	c.tokens = min(c.tokens, tokens)
	keep := (c.tokens + pageTokens - 1) / pageTokens
	var first error
	for _, row := range c.pages[keep:] {
		if err := freeAll(row); err != nil && first == nil {
			first = err
		}
	}
	c.pages = c.pages[:keep]
	return first
}

// copy replaces the contents by the first tokens of another's.
func (c *kvCache) copy(from *kvCache, tokens int) error {
	if err := c.cut(0); err != nil {
		return err
	}
	if err := c.grow(tokens); err != nil {
		return err
	}
	line := pageTokens * c.dim * c.rounding.cell()
	for p, row := range c.pages {
		n := min(pageTokens, tokens-p*pageTokens) * c.dim * c.rounding.cell()
		for i := range row {
			for at := 0; at < len(row[i].bytes); at += line {
				copy(row[i].bytes[at:at+n], from.pages[p][i].bytes[at:at+n])
			}
		}
	}
	c.tokens = tokens
	return nil
}

// cells returns the keys and values of a head, tokens from to to, which lie in
// one page.
func (c *kvCache) cells(layer, head, from, to int) (keys, values []byte) {
	page := c.pages[from/pageTokens][layer].bytes
	cell := c.dim * c.rounding.cell()
	at := (head*pageTokens + from%pageTokens) * cell
	half, size := len(page)/2, (to-from)*cell
	return page[at : at+size], page[half+at : half+at+size]
}

// store puts one token's keys and values, [KV heads, head dim], in their place.
func (c *kvCache) store(layer, position int, k, v []float32) {
	for h := range c.heads {
		keys, values := c.cells(layer, h, position, position+1)
		c.rounding.pack(keys, k[h*c.dim:][:c.dim])
		c.rounding.pack(values, v[h*c.dim:][:c.dim])
	}
}

func (c *kvCache) bytes() int64 {
	return int64(len(c.pages) * c.layers * c.pageBytes())
}
