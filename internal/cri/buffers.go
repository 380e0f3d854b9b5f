package cri

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// bufferSizes are those of a pool of buffers, as exponents of two. gRPC's own pool has none between 32 KB and 1 MB,
// and the list of all containers of 50 pods is larger than 32 KB.
var bufferSizes = []uint8{8, 12, 14, 15, 16, 17, 18, 19, 20}

// pooled decodes messages from buffers of its own pool.
type pooled struct {
	encoding.CodecV2
	pool mem.BufferPool
}

// smallBuffers makes a connection decode each message from a buffer that is at most twice as large.
func smallBuffers() (grpc.DialOption, error) {
	pool, err := mem.NewBinaryTieredBufferPool(bufferSizes...)
	if err != nil {
		return nil, fmt.Errorf("make buffers: %w", err)
	}
	codec := pooled{CodecV2: encoding.GetCodecV2(proto.Name), pool: pool}
	return grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec)), nil
}

// Unmarshal implements encoding.CodecV2. The embedded codec does not copy a message that is one buffer.
func (p pooled) Unmarshal(data mem.BufferSlice, into any) error {
	whole := data.MaterializeToBuffer(p.pool)
	defer whole.Free()
	return p.CodecV2.Unmarshal(mem.BufferSlice{whole}, into)
}
