package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	weatherTool = `{"type":"function","function":{"name":"get_weather","description":"Get the weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"Name of the city"}},"required":["city"]}}}`
	weatherAsk  = `{"role":"user","content":"What is the weather in Oslo?"}`
)

func weather(messages, more string) string {
	return askFor("["+messages+"]", `"max_tokens":200,"tools":[`+weatherTool+`]`+more)
}

func toolChecks() []check {
	return []check{
		{"tools", "a call", func(s *session) error {
			_, err := s.called(weather(weatherAsk, ""))
			return err
		}},
		{"tools", "a call, streamed", streamedCall},
		{"tools", "a call and its result", roundTrip},
		{"tools", "tool_choice none", func(s *session) error {
			c, err := s.chat(weather(weatherAsk, `,"tool_choice":"none"`))
			if err != nil {
				return err
			}
			if len(c.Choices[0].Message.ToolCalls) > 0 || c.finish() == "tool_calls" {
				return errors.New("the model called, want no call")
			}
			return nil
		}},
		{"tools", "tool_choice none hides the tools", func(s *session) error {
			return s.equal(askFor("["+weatherAsk+"]", `"max_tokens":8`), askFor("["+weatherAsk+"]", `"max_tokens":8,"tool_choice":"none","tools":[`+weatherTool+`]`))
		}},
		{"tools", "the result of no call", func(s *session) error {
			return s.refuse(chatPath, askFor(`[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"call_9","content":"x"}]`, ""), refusal{status: 400, param: "messages[1].tool_call_id"})
		}},
		{"tools", "arguments that are no JSON", func(s *session) error {
			body := askFor(`[{"role":"user","content":"x"},`+strings.Replace(callMessage, `"{}"`, `"{"`, 1)+`,{"role":"tool","tool_call_id":"call_1","content":"x"}]`, "")
			return s.refuse(chatPath, body, refusal{status: 400, param: "messages[1].tool_calls[0].function.arguments"})
		}},
	}
}

// called asks for what a tool is there for. A model may answer all the same.
func (s *session) called(body string) (*chatAnswer, error) {
	c, err := s.chat(body)
	if err != nil {
		return nil, err
	}
	return c, checkCalls(c)
}

func checkCalls(c *chatAnswer) error {
	m := c.Choices[0].Message
	if strings.Contains(c.text(), "<tool_call>") || strings.Contains(c.text(), "<function=") {
		return fmt.Errorf("content %q, want no call in it", c.text())
	}
	if len(m.ToolCalls) == 0 {
		return skipped(fmt.Sprintf("the model did not call: it said %q", c.text()))
	}
	if c.finish() != "tool_calls" {
		return fmt.Errorf("finish reason %q with calls, want tool_calls", c.finish())
	}
	ids := map[string]bool{}
	for _, call := range m.ToolCalls {
		if call.ID == "" || ids[call.ID] || call.Type != "function" || call.Function.Name != "get_weather" {
			return fmt.Errorf("call %+v, want an id of its own, the type function and the tool's name", call)
		}
		ids[call.ID] = true
		var args map[string]any
		if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil {
			return fmt.Errorf("arguments %q, want a JSON object: %w", call.Function.Arguments, err)
		}
	}
	return nil
}

func streamedCall(s *session) error {
	whole, err := s.called(weather(weatherAsk, ""))
	if err != nil {
		return err
	}
	streamed, err := s.chatStream(streaming(weather(weatherAsk, "")))
	if err != nil {
		return err
	}
	if err := checkCalls(streamed); err != nil {
		return err
	}
	got, want := streamed.Choices[0].Message.ToolCalls, whole.Choices[0].Message.ToolCalls
	if len(got) != len(want) {
		return fmt.Errorf("%d calls streamed, %d whole", len(got), len(want))
	}
	for i := range want {
		if got[i].Function != want[i].Function {
			return fmt.Errorf("streamed the call %+v, whole %+v", got[i].Function, want[i].Function)
		}
	}
	return sameAnswer(streamed, whole)
}

// roundTrip gives the model the result of its call.
func roundTrip(s *session) error {
	c, err := s.called(weather(weatherAsk, ""))
	if err != nil {
		return err
	}
	messages := weatherAsk + `,{"role":"assistant","content":null,"tool_calls":[`
	var results strings.Builder
	for i, call := range c.Choices[0].Message.ToolCalls {
		call.Index = nil
		b, err := json.Marshal(call)
		if err != nil {
			return err
		}
		if i > 0 {
			messages += ","
		}
		messages += string(b)
		fmt.Fprintf(&results, `,{"role":"tool","tool_call_id":%s,"content":"cloudy, 7 degrees"}`, quoted(call.ID))
	}
	answer, err := s.chat(weather(messages+"]}"+results.String(), ""))
	if err != nil {
		return err
	}
	if answer.text() == "" && len(answer.Choices[0].Message.ToolCalls) == 0 {
		return errors.New("the answer to a result is empty")
	}
	return nil
}
