package crirecord

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"swiftlet/test/criproxy"
)

// line is one response with its request.
type line struct {
	Time     time.Time       `json:"t"` // when the call began
	Millis   float64         `json:"ms"`
	Method   string          `json:"method"`
	Request  json.RawMessage `json:"req"`
	Response json.RawMessage `json:"resp,omitempty"`
	Error    string          `json:"err,omitempty"`
}

// write writes a line of a call. A message that cannot be decoded is recorded as an error; the call is
// not affected.
func (r *Recorder) write(c criproxy.Call, l line) {
	l.Time, l.Method = c.Began, c.Method()
	l.Millis = float64(time.Since(c.Began).Microseconds()) / 1000
	l.Request = asJSON(criproxy.DecodeRequest(c))
	text, err := json.Marshal(l)
	if err != nil {
		text = fmt.Appendf(nil, `{"err": %q}`, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(text, '\n')) // a failure loses a line of the record, but does not affect the call
}

func asJSON(message proto.Message, err error) json.RawMessage {
	if err == nil {
		var text []byte
		if text, err = protojson.Marshal(message); err == nil {
			return text
		}
	}
	text, _ := json.Marshal(err.Error())
	return text
}
