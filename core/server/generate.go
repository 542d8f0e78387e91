package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

// job is a checked request: what to complete, and how its API says it.
type job struct {
	requests []completion.Request // one for each choice
	// origins names the place in the request of each message of a conversation.
	origins  []string
	schemas  schemaPlaces
	stream   bool
	progress bool // the client asked for progress events
	voice    voice
}

// voice is an API's way to say what a completion does. The choices of a job
// are told apart by index.
type voice interface {
	// begin is called once the job is admitted, with each choice's prompt.
	begin(prompts [][]int32)
	// whole returns the body of an answer that is not streamed.
	whole(answers []*answer) any

	// open writes what comes before the first event.
	open(*eventWriter)
	// event writes one event other than progress. For Done, a's result is set.
	event(out *eventWriter, choice int, e completion.Event, a *answer)
	// progress writes how far the job is.
	progress(*eventWriter, engine.Progress)
	// beat writes a sign of life.
	beat(*eventWriter)
	// close writes what comes after the last choice is done.
	close(out *eventWriter, answers []*answer)
	// fail writes a fault, after which the stream ends.
	fail(*eventWriter, *apiError)
}

// run answers a job.
func (s *server) run(w http.ResponseWriter, r *http.Request, j *job) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	streams, err := s.start(ctx, j)
	holdOf(r).release() // from here on the queue bounds what there is
	if err != nil {
		writeError(w, r, j.errorOf(endedBy(ctx, err)))
		return
	}
	j.voice.begin(prompts(streams))
	var out *eventWriter
	if j.stream {
		recordOf(r).sent = true
		out = openEvents(w)
		j.voice.open(out)
		out.flush()
	}
	f := follower{job: j, out: out, answers: make([]*answer, len(streams))}
	err = f.follow(ctx, cancel, streams)
	s.conclude(w, r, j, &f, err)
}

// start admits all choices of a job, or none.
func (s *server) start(ctx context.Context, j *job) ([]Stream, error) {
	var streams []Stream
	for _, request := range j.requests {
		stream, err := s.Start(ctx, request)
		if err != nil {
			for _, open := range streams {
				open.Close()
			}
			return nil, err
		}
		streams = append(streams, stream)
	}
	return streams, nil
}

func prompts(streams []Stream) [][]int32 {
	out := make([][]int32, len(streams))
	for i, s := range streams {
		out[i] = s.Prompt()
	}
	return out
}

// conclude answers a job whose choices have all ended, by themselves or by err.
func (s *server) conclude(w http.ResponseWriter, r *http.Request, j *job, f *follower, err error) {
	rec := recordOf(r)
	for _, a := range f.answers {
		if a.result != nil {
			rec.add(a.result)
			s.metrics.completed(a.result)
			s.journal.completed(a.result)
		}
	}
	if !f.first.IsZero() {
		s.metrics.firstToken.Observe(f.first.Sub(f.begin).Seconds())
	}
	switch {
	case err == nil && f.out == nil:
		writeJSON(w, http.StatusOK, j.voice.whole(f.answers))
	case err == nil:
		j.voice.close(f.out, f.answers)
		f.out.flush()
	case f.out == nil:
		writeError(w, r, j.errorOf(err))
	default:
		e := j.errorOf(err)
		rec.fail(e)
		j.voice.fail(f.out, e)
		f.out.flush()
	}
}

// errorOf is errorOf with the request's own names of messages.
func (j *job) errorOf(err error) *apiError {
	var conversation *chat.Error
	if errors.As(err, &conversation) {
		param := renameOrigin(conversation.Path, j.origins)
		return badField(codeValue, param, "%s: %s", param, conversation.Reason)
	}
	if e := j.schemas.fault(err); e != nil {
		return e
	}
	return errorOf(err)
}

// follower takes a job's choices from their first event to their last.
type follower struct {
	job     *job
	out     *eventWriter // nil where the answer is not streamed
	answers []*answer
	begin   time.Time // of the wait for events
	first   time.Time // the first token's text came, of any choice
}

// step is an event of one choice, or its end by an error.
type step struct {
	choice int
	event  completion.Event
	err    error
}

// follow returns when each choice is done, or the first error. No goroutine and
// no stream is left then.
func (f *follower) follow(ctx context.Context, cancel func(), streams []Stream) error {
	f.begin = time.Now()
	for i := range f.answers {
		f.answers[i] = &answer{}
	}
	steps := make(chan step, 16)
	var pumps sync.WaitGroup
	for i, stream := range streams {
		pumps.Go(func() { pump(ctx, stream, i, steps) })
	}
	defer func() {
		cancel()
		pumps.Wait() // a stream belongs to one goroutine at a time
		for _, stream := range streams {
			stream.Close()
		}
	}()
	return f.listen(ctx, steps, len(streams))
}

// listen takes the steps of so many choices, with signs of life between them.
func (f *follower) listen(ctx context.Context, steps <-chan step, choices int) error {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for choices > 0 {
		select {
		case st := <-steps:
			if st.err != nil {
				return endedBy(ctx, st.err)
			}
			if st.event.Kind == completion.Done {
				choices--
			}
			f.take(st)
			if len(steps) > 0 && !f.out.full() {
				continue // they go out together
			}
		case <-beat.C:
			if f.out != nil {
				f.job.voice.beat(f.out)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if f.out == nil {
			continue
		}
		if f.out.flush(); f.out.err != nil {
			return context.Canceled // the client has gone
		}
	}
	return nil
}

// endedBy returns why ctx ended where err is only the echo of it: the client
// has gone, or the server stops.
func endedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// pump moves a stream's events into steps, up to Done or an error.
func pump(ctx context.Context, stream Stream, choice int, steps chan<- step) {
	for {
		event, err := next(stream)
		select {
		case steps <- step{choice, event, err}:
		case <-ctx.Done():
			return
		}
		if err != nil || event.Kind == completion.Done {
			return
		}
	}
}

// next returns a stream's next event. A panic in it ends the one request, as a
// panic of a handler does.
func next(stream Stream) (event completion.Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	event, err = stream.Next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // Done comes before it
	}
	return event, err
}

func (f *follower) take(st step) {
	a := f.answers[st.choice]
	switch {
	case st.event.Kind != completion.Progress:
		if f.first.IsZero() {
			f.first = time.Now()
		}
		a.add(st.event)
		if f.out != nil {
			f.job.voice.event(f.out, st.choice, st.event, a)
		}
	case f.out != nil && f.job.progress:
		f.job.voice.progress(f.out, st.event.Progress)
	}
}
