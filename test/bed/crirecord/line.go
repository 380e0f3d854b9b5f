package crirecord

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1" // describes the messages
)

// line is one response with its request.
type line struct {
	Time     time.Time       `json:"t"` // when the call began
	Millis   float64         `json:"ms"`
	Method   string          `json:"method"`
	Request  json.RawMessage `json:"req"`
	Response json.RawMessage `json:"resp,omitempty"`
	Error    string          `json:"err,omitempty"`

	request, answer []byte
}

// write writes the line. A message that cannot be decoded is recorded as an error; the call is not
// affected.
func (r *Recorder) write(l line) {
	l.Millis = float64(time.Since(l.Time).Microseconds()) / 1000
	requestType, responseType := messages(l.Method)
	l.Request = asJSON(requestType, l.request)
	if l.Error == "" {
		l.Response = asJSON(responseType, l.answer)
	}
	l.Method = path.Base(l.Method)
	text, err := json.Marshal(l)
	if err != nil {
		text = fmt.Appendf(nil, `{"err": %q}`, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(text, '\n')) // a failure loses a line of the record, but does not affect the call
}

// messages returns the request and response types of a method such as
// /runtime.v1.RuntimeService/Version; nil if it is unknown.
func messages(method string) (request, response protoreflect.MessageDescriptor) {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, nil
	}
	described, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, nil
	}
	return described.Input(), described.Output()
}

func asJSON(kind protoreflect.MessageDescriptor, raw []byte) json.RawMessage {
	text, err := decode(kind, raw)
	if err != nil {
		text, _ = json.Marshal(err.Error())
	}
	return text
}

func decode(kind protoreflect.MessageDescriptor, raw []byte) ([]byte, error) {
	if kind == nil {
		return nil, fmt.Errorf("decode: unknown method")
	}
	found, err := protoregistry.GlobalTypes.FindMessageByName(kind.FullName())
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	message := found.New().Interface()
	if err := proto.Unmarshal(raw, message); err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind.FullName(), err)
	}
	return protojson.Marshal(message)
}
