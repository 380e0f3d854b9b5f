package cri

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/clip"
)

// BriefExec returns a client on the same connections whose ExecSync returns only the beginning of a command's
// output. The runtime sends up to 16 MiB of it, for every run of every probe.
func (c *Client) BriefExec() *Client {
	brief := *c
	brief.execOptions = []grpc.CallOption{grpc.ForceCodecV2(briefCodec{encoding.GetCodecV2(proto.Name)})}
	return &brief
}

// maxBriefOutput limits each stream of a command's output: one byte more than is shown, so that who shows it
// sees that there was more.
const maxBriefOutput = clip.Output + 1

// briefCodec decodes responses of ExecSync without copying more of the output than is kept.
type briefCodec struct{ encoding.CodecV2 }

func (c briefCodec) Unmarshal(data mem.BufferSlice, v any) error {
	response, ok := v.(*runtimeapi.ExecSyncResponse)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	r := data.Reader()
	defer r.Close()
	for r.Remaining() > 0 {
		if err := readExecField(r, response); err != nil {
			return fmt.Errorf("decode response of ExecSync: %w", err)
		}
	}
	return nil
}

func readExecField(r *mem.Reader, response *runtimeapi.ExecSyncResponse) error {
	tag, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	switch number, kind := protowire.DecodeTag(tag); kind {
	case protowire.VarintType:
		value, err := binary.ReadUvarint(r)
		if number == 3 {
			response.ExitCode = int32(value)
		}
		return err
	case protowire.BytesType:
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		if size > uint64(r.Remaining()) {
			return io.ErrUnexpectedEOF
		}
		kept := make([]byte, min(size, maxBriefOutput))
		if _, err := io.ReadFull(r, kept); err != nil {
			return err
		}
		switch number {
		case 1:
			response.Stdout = kept
		case 2:
			response.Stderr = kept
		}
		_, err = io.CopyN(io.Discard, r, int64(size)-int64(len(kept)))
		return err
	case protowire.Fixed32Type:
		_, err = io.CopyN(io.Discard, r, 4)
		return err
	case protowire.Fixed64Type:
		_, err = io.CopyN(io.Discard, r, 8)
		return err
	}
	return fmt.Errorf("unknown wire type of tag %d", tag)
}
