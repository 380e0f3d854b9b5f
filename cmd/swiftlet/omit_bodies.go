package main

import (
	"context"
	"log/slog"
)

// omitBodies omits the bodies of requests to the API server and of its responses, which client-go logs from
// verbosity 8 on. They have Secrets, tokens of pods and tokens of the node's clients.
type omitBodies struct{ slog.Handler }

// Handle implements slog.Handler.
func (h omitBodies) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != "Request Body" && r.Message != "Response Body" {
		return h.Handler.Handle(ctx, r)
	}
	omitted := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "body" {
			a = slog.Int("omittedBytes", len(a.Value.String()))
		}
		omitted.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, omitted)
}

// WithAttrs implements slog.Handler.
func (h omitBodies) WithAttrs(attrs []slog.Attr) slog.Handler {
	return omitBodies{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h omitBodies) WithGroup(name string) slog.Handler { return omitBodies{h.Handler.WithGroup(name)} }
