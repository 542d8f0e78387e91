package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

// conversation is a chat in the terminal.
type conversation struct {
	service  *completion.Service
	in       *bufio.Reader
	out      io.Writer
	person   bool // someone types; else lines come from a file or a pipe
	thinking bool
	sampling engine.Sampling
	messages []chat.Message
}

func newChat() *cobra.Command {
	var s settings
	var system string
	var thinking bool
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE]",
		Short: "Chat with the model in the terminal",
		Long: "chat talks to the model without a server. Each line is a message; Ctrl-C stops an\n" +
			"answer, Ctrl-D ends the chat. With a MESSAGE it gives one answer and ends.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := conversation{in: bufio.NewReader(cmd.InOrStdin()), out: cmd.OutOrStdout(), thinking: thinking}
			if system != "" {
				c.messages = append(c.messages, chat.Message{Role: "system", Content: chat.Text(system)})
			}
			if f, ok := cmd.InOrStdin().(*os.File); ok {
				c.person = term.IsTerminal(int(f.Fd()))
			}
			return s.chat(cmd.Context(), &c, strings.Join(args, " "))
		},
	}
	s.modelFlags(cmd)
	s.engineFlags(cmd)
	cmd.Flags().StringVar(&system, "system", "", "system message")
	cmd.Flags().BoolVar(&thinking, "thinking", false, "let the model think before it answers")
	return cmd
}

// chat runs the conversation: one message, or all that are typed.
func (s *settings) chat(ctx context.Context, c *conversation, message string) error {
	o, err := s.open()
	if err != nil {
		return err
	}
	defer o.Close()
	options, _, err := s.engineOptions(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	e, err := engine.New(withProgress(o.loader(), newProgress(os.Stderr)), options)
	if err != nil {
		return err
	}
	defer o.end(ctx, e)
	if err := e.WaitLoaded(ctx); err != nil {
		return err
	}
	if c.service, err = completion.New(e, o.tokenizer); err != nil {
		return err
	}
	if g := o.checkpoint.Generation(); c.thinking && g.DoSample {
		c.sampling = engine.Sampling{Temperature: g.Temperature, TopK: g.TopK, TopP: g.TopP}
	}
	if message != "" {
		return c.answer(ctx, message)
	}
	return c.loop(ctx)
}

// loop answers each line until there are no more. Where a person types, Ctrl-C
// ends the reply, and the chat only between replies.
func (c *conversation) loop(ctx context.Context) error {
	if c.person {
		signal.Reset(os.Interrupt)
	}
	for {
		line, err := c.read(ctx)
		if line = strings.TrimSpace(line); line != "" {
			if err := c.answer(ctx, line); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && ctx.Err() == nil:
			fmt.Fprintln(c.out)
			return nil // Ctrl-C at the prompt
		case err != nil:
			return err
		}
	}
}

// interruptible returns a context that Ctrl-C ends, where a person types.
func (c *conversation) interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.person {
		return signal.NotifyContext(ctx, os.Interrupt)
	}
	return context.WithCancel(ctx)
}

// read returns the next line, or why there is none.
func (c *conversation) read(ctx context.Context) (string, error) {
	ctx, stop := c.interruptible(ctx)
	defer stop()
	if c.person {
		fmt.Fprint(c.out, "> ")
	}
	type result struct {
		line string
		err  error
	}
	// Reading a terminal can't be cancelled; the goroutine ends with the process.
	lines := make(chan result, 1)
	go func() {
		line, err := c.in.ReadString('\n')
		lines <- result{line, err}
	}()
	select {
	case r := <-lines:
		return r.line, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// answer streams the model's reply to a message.
func (c *conversation) answer(ctx context.Context, message string) error {
	c.messages = append(c.messages, chat.Message{Role: "user", Content: chat.Text(message)})
	running, stop := c.interruptible(ctx)
	defer stop()
	reply, err := c.stream(running)
	fmt.Fprintln(c.out)
	if running.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	var full *engine.ContextError
	if errors.As(err, &full) {
		return fmt.Errorf("this chat has %d tokens and fills the context of %d; a larger --max-seq allows more", full.Prompt, full.Limit)
	}
	c.messages = append(c.messages, chat.Message{Role: "assistant", Content: chat.Text(reply)})
	return err
}

// stream prints the reply as it comes and returns it, thoughts left out.
func (c *conversation) stream(ctx context.Context) (string, error) {
	s, err := c.service.Start(ctx, completion.Request{
		Messages: c.messages, Thinking: c.thinking, Sampling: c.sampling, LogProbs: engine.NoLogProbs,
	})
	if err != nil {
		return "", err
	}
	defer s.Close()
	var reply strings.Builder
	thinking := false
	for {
		e, err := s.Next()
		if err == io.EOF {
			return reply.String(), nil
		}
		if err != nil {
			return reply.String(), err
		}
		switch e.Kind {
		case completion.Reasoning:
			thinking = true
			fmt.Fprint(c.out, e.Text)
		case completion.Content:
			if thinking {
				fmt.Fprint(c.out, "\n\n")
				thinking = false
			}
			reply.WriteString(e.Text)
			fmt.Fprint(c.out, e.Text)
		}
	}
}
