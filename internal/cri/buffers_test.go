package cri

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// countedPool records the sizes of the buffers that were taken and are not back.
type countedPool struct {
	mem.BufferPool
	capacity, taken int
}

func (p *countedPool) Get(length int) *[]byte {
	buffer := p.BufferPool.Get(length)
	p.capacity, p.taken = cap(*buffer), p.taken+1
	return buffer
}

func (p *countedPool) Put(buffer *[]byte) {
	p.taken--
	p.BufferPool.Put(buffer)
}

// TestBuffers: a message needs a buffer of at most twice its size, which goes back to the pool.
func TestBuffers(t *testing.T) {
	for _, containers := range []int{50, 200, 1000} {
		t.Run(fmt.Sprint(containers), func(t *testing.T) {
			sent := &runtimeapi.ListContainersResponse{}
			for i := range containers {
				sent.Containers = append(sent.Containers, &runtimeapi.Container{Id: fmt.Sprintf("%0*d", 800, i)})
			}
			codec := encoding.GetCodecV2(proto.Name)
			data, err := codec.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			whole := data.Materialize()
			frames := mem.BufferSlice{mem.SliceBuffer(whole[:len(whole)/2]), mem.SliceBuffer(whole[len(whole)/2:])}
			pool, err := mem.NewBinaryTieredBufferPool(bufferSizes...)
			if err != nil {
				t.Fatal(err)
			}
			counted := &countedPool{BufferPool: pool}
			var got runtimeapi.ListContainersResponse
			if err := (pooled{CodecV2: codec, pool: counted}).Unmarshal(frames, &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Containers) != containers || got.Containers[containers-1].Id != sent.Containers[containers-1].Id {
				t.Errorf("got %d containers, want the %d that were sent", len(got.Containers), containers)
			}
			if counted.capacity > 2*len(whole) {
				t.Errorf("a message of %d bytes took a buffer of %d", len(whole), counted.capacity)
			}
			if counted.taken != 0 {
				t.Errorf("%d buffers are not back", counted.taken)
			}
		})
	}
}
