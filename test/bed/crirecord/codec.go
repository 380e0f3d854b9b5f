package crirecord

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// rawCodec takes messages for the bytes they are, so that fields nobody here knows pass too.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshal: %T is no raw message", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*message)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal: %T is no raw message", v)
	}
	*message = data.Materialize()
	return nil
}
