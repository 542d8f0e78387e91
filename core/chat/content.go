package chat

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The template's own words, which clients know from other servers.
const (
	noMessages     = "No messages provided."
	noQuery        = "No user query found in messages."
	lateSystem     = "System message must be at the beginning."
	unexpectedRole = "Unexpected message role."
	oddContent     = "Unexpected content type."
	oddPart        = "Unexpected item type in content."
	systemImage    = "System message cannot contain images."
	systemVideo    = "System message cannot contain videos."
)

// What the template would render and this engine cannot read.
const (
	imageRefused = "images are not supported: the engine reads text only"
	videoRefused = "videos are not supported: the engine reads text only"
)

// ParseContent reads a message's content as the template does: a string, null
// or nothing, or a list of parts. A part is what its keys say, whatever its
// type says. path names the content in errors, which are of type *Error; parts
// of a kind that cannot be rendered are left for Render to refuse.
func ParseContent(raw json.RawMessage, path string) ([]Part, error) {
	p := printer{reader: reader{in: string(raw)}}
	p.space()
	if p.at == len(p.in) {
		return nil, nil
	}
	var parts []Part
	var err error
	switch p.peek() {
	case 'n':
		_, err = p.constant()
	case '"':
		var s string
		s, err = p.string()
		parts = Text(s)
	case '[':
		err = p.elements(func() error {
			part, err := p.part()
			parts = append(parts, part)
			return err
		})
	default:
		return nil, &Error{path, oddContent}
	}
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, &Error{path, err.Error()}
	}
	return parts, nil
}

// part reads one element of a list of parts.
func (p *printer) part() (Part, error) {
	if p.peek() != '{' {
		return Part{Kind: OtherPart}, p.skip()
	}
	var kind, text string
	var image, video, hasText bool
	err := p.members(func(key string) (err error) {
		isString := p.peek() == '"'
		switch {
		case key == "type" && isString:
			kind, err = p.string()
			return err
		case key == "text" && isString:
			hasText = true
			text, err = p.string()
			return err
		case key == "text":
			hasText = false
		case key == "image" || key == "image_url":
			image = true
		case key == "video":
			video = true
		}
		return p.skip()
	})
	switch {
	case image || kind == "image":
		return Part{Kind: ImagePart}, err
	case video || kind == "video":
		return Part{Kind: VideoPart}, err
	case hasText:
		return Part{Text: text}, err
	}
	return Part{Kind: OtherPart}, err
}

// flatten joins the parts of message i and strips the result.
func flatten(messages []Message, i int) (string, error) {
	m := &messages[i]
	if len(m.Content) == 1 && m.Content[0].Kind == TextPart {
		return strip(m.Content[0].Text), nil
	}
	var b strings.Builder
	for j, p := range m.Content {
		if reason := p.refusal(m.Role == "system" && i == 0); reason != "" {
			return "", &Error{fmt.Sprintf("messages[%d].content[%d]", i, j), reason}
		}
		b.WriteString(p.Text)
	}
	return strip(b.String()), nil
}

func (p Part) refusal(system bool) string {
	switch p.Kind {
	case TextPart:
		return ""
	case ImagePart:
		if system {
			return systemImage
		}
		return imageRefused
	case VideoPart:
		if system {
			return systemVideo
		}
		return videoRefused
	}
	return oddPart
}
