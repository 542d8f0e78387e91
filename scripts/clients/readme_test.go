package clients

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// example is the README's curl command with what it says the answer is.
var example = regexp.MustCompile("(?s)curl http://127\\.0\\.0\\.1:11535(\\S+).*?-H '([^:]+): ([^']+)'.*?-d '([^']+)'.*?answers `([^`]+)`")

func TestReadme(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := example.FindStringSubmatch(string(b))
	if m == nil {
		t.Fatalf("README.md has no curl command with an answer, want a match of %s", example)
	}
	path, header, value, body, want := m[1], m[2], m[3], m[4], m[5]
	req, err := http.NewRequestWithContext(limited(t), http.MethodPost, served.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(header, value)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct{ Choices []struct{ Message message } }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatalf("status %s: %v", resp.Status, err)
	}
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != want {
		t.Errorf("POST %s: status %s, choices %+v, want the answer %q", path, resp.Status, got.Choices, want)
	}
}
