package chat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseContent(t *testing.T) {
	other := []Part{{Kind: OtherPart}}
	for _, tt := range []struct {
		name, in string
		want     []Part
		err      string
	}{
		{"missing", "", nil, ""},
		{"null", " null ", nil, ""},
		{"string", `"a\n\u00e9"`, Text("a\né"), ""},
		{"empty string", `""`, Text(""), ""},
		{"no parts", `[]`, nil, ""},
		{"text parts", `[{"type":"text","text":"a"}, {"text":"b"}]`, []Part{{Text: "a"}, {Text: "b"}}, ""},
		{"image by key", `[{"type":"text","text":"a","image":"x"}]`, []Part{{Kind: ImagePart}}, ""},
		{"image_url", `[{"type":"image_url","image_url":{"url":"data:"}}]`, []Part{{Kind: ImagePart}}, ""},
		{"image by type", `[{"type":"image"}]`, []Part{{Kind: ImagePart}}, ""},
		{"video by key", `[{"video":["x"]}]`, []Part{{Kind: VideoPart}}, ""},
		{"video by type", `[{"type":"video","text":"a"}]`, []Part{{Kind: VideoPart}}, ""},
		{"audio", `[{"type":"input_audio","input_audio":{}}]`, other, ""},
		{"text that is no string", `[{"type":"text","text":null}]`, other, ""},
		{"part that is a string", `["text"]`, other, ""},
		{"part that is a number", `[1]`, other, ""},
		{"number", `3`, nil, "chat: here: Unexpected content type."},
		{"object", `{"text":"a"}`, nil, "chat: here: Unexpected content type."},
		{"true", `true`, nil, "chat: here: Unexpected content type."},
		{"half a surrogate pair", `["\udc00"]`, nil, "chat: here: invalid JSON: half of a surrogate pair at byte 8"},
		{"broken", `[{"text":"a"`, nil, "chat: here: invalid JSON: no comma or closing bracket at byte 12"},
		{"more after it", `"a" "b"`, nil, "chat: here: invalid JSON: data after the value at byte 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseContent([]byte(tt.in), "here")
			if err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}
