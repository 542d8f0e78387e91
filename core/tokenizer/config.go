package tokenizer

// config is what this package reads of tokenizer_config.json.
type config struct {
	added []addedToken
	eos   string
}

// readConfig reads tokenizer_config.json. It has many other members, for the
// Python classes and the chat; they are skipped.
func readConfig(data []byte) (config, error) {
	var c config
	r := &jsonReader{data: data}
	err := r.members(func(name string) error { return c.readMember(r, name) })
	if err == nil {
		err = r.end()
	}
	return c, err
}

func (c *config) readMember(r *jsonReader, name string) (err error) {
	switch name {
	case "added_tokens_decoder":
		c.added, err = readAddedTokensDecoder(r)
	case "eos_token":
		c.eos, err = readNamedToken(r)
	case "pretokenize_regex":
		err = setting{path: name, accepted: []string{quotedPattern, quotedOldPattern, "null"}}.read(r)
	case "add_prefix_space", "add_bos_token", "add_eos_token", "split_special_tokens":
		err = setting{path: name, accepted: []string{"false", "null"}}.read(r)
	default:
		_, err = r.skip()
	}
	return err
}

// readNamedToken reads the content of a token: a string, an object that
// describes the token, or null for none.
func readNamedToken(r *jsonReader) (content string, err error) {
	readContent := func() error {
		text, err := r.str()
		content = string(text)
		return err
	}
	switch r.peek() {
	case '"':
		err = readContent()
	case '{':
		err = r.members(func(name string) error {
			if name == "content" {
				return readContent()
			}
			_, err := r.skip()
			return err
		})
	default:
		err = setting{path: "eos_token", accepted: []string{"null"}}.read(r)
	}
	return content, err
}
