package criproxy

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// rawCodec passes messages as bytes, so that unknown fields are forwarded too.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshal: %T is not a raw message", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*message)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal: %T is not a raw message", v)
	}
	*message = data.Materialize()
	return nil
}
