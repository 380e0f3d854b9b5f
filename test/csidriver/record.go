package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// call is one line of calls.jsonl.
type call struct {
	At      time.Time       `json:"at"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Error   string          `json:"error,omitempty"`
}

// record appends every call to calls.jsonl, and blocks calls that have a hold file.
func (d *driver) record(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	d.hold(ctx, "before-"+method)
	answer, err := handle(ctx, request)
	d.hold(ctx, "after-"+method)
	line := call{At: time.Now(), Method: method}
	if message, ok := request.(proto.Message); ok {
		line.Request, _ = protojson.Marshal(message)
	}
	if err != nil {
		line.Error = err.Error()
	}
	d.callsMu.Lock()
	defer d.callsMu.Unlock()
	return answer, errors.Join(err, d.append(line))
}

func (d *driver) append(line call) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(d.state, "calls.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(text, '\n'))
	return err
}

// hold blocks while the hold file of this point exists.
func (d *driver) hold(ctx context.Context, point string) {
	holdFile := filepath.Join(d.state, "hold-"+point)
	if _, err := os.Stat(holdFile); errors.Is(err, fs.ErrNotExist) {
		return
	}
	inFile := filepath.Join(d.state, "in-"+point)
	_ = os.WriteFile(inFile, nil, 0o600)
	for ctx.Err() == nil {
		if _, err := os.Stat(holdFile); errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.Remove(inFile)
}
