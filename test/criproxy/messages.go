package criproxy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1" // describes the messages
)

// DecodeRequest decodes the request of a call.
func DecodeRequest(c Call) (proto.Message, error) {
	method, err := describe(c.FullMethod)
	if err != nil {
		return nil, err
	}
	return decode(method.Input(), c.Request)
}

// DecodeAnswer decodes a response to a call.
func DecodeAnswer(c Call, raw []byte) (proto.Message, error) {
	method, err := describe(c.FullMethod)
	if err != nil {
		return nil, err
	}
	return decode(method.Output(), raw)
}

func describe(fullMethod string) (protoreflect.MethodDescriptor, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("describe method %s: %w", fullMethod, err)
	}
	method, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("describe method %s: it is a %T", fullMethod, found)
	}
	return method, nil
}

func decode(kind protoreflect.MessageDescriptor, raw []byte) (proto.Message, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByName(kind.FullName())
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	message := found.New().Interface()
	if err := proto.Unmarshal(raw, message); err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind.FullName(), err)
	}
	return message, nil
}
