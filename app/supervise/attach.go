package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// word is what a child tells its parent, as a line of JSON.
type word struct {
	Nonce     string `json:"nonce"`
	Listening string `json:"listening"` // URL without a path
}

// leaveTime is how long a child may take to leave in order after its parent is
// gone. A request that runs, or a device that hangs, must not keep an orphan.
var leaveTime = 5 * time.Second

// Parent is a child's view of the process that supervises it.
type Parent struct {
	// Nonce is the secret by which the parent knows this child. The status
	// must repeat it as its instance.
	Nonce string
	out   io.Writer
}

// Attach makes this process a supervised child: it reads the nonce from in, and
// the context it returns ends with ctx or at the end of in, which is the end of
// the parent. Some seconds after that the process ends in any case.
func Attach(ctx context.Context, in io.Reader, out io.Writer) (context.Context, *Parent, error) {
	r := bufio.NewReader(in)
	line, err := r.ReadString('\n')
	nonce := strings.TrimSpace(line)
	if err != nil || nonce == "" {
		return nil, nil, errors.New("supervise: standard input does not begin with a nonce: only the app starts an engine in this way")
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, r)
		cancel()
		time.Sleep(leaveTime)
		os.Exit(1)
	}()
	return ctx, &Parent{nonce, out}, nil
}

// Listening tells the parent where this child can be called.
func (p *Parent) Listening(url string) error {
	line, err := json.Marshal(word{p.Nonce, url})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.out, "%s\n", line); err != nil {
		return fmt.Errorf("supervise: tell the parent: %w", err)
	}
	return nil
}
