package server

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"k8s.io/streaming/pkg/httpstream/wsstream"

	"swiftlet/internal/connlimit"
)

const (
	protocolHeader = "Sec-Websocket-Protocol" // in the canonical form of net/http
	// bearerProtocolPrefix is the prefix of a subprotocol that carries a bearer token. Browsers
	// can send no other header with a WebSocket.
	bearerProtocolPrefix = "base64url.bearer.authorization.k8s.io."
)

// authenticateWebSocket takes a bearer token from the subprotocols of a WebSocket. It removes
// a valid token from them, because handlers must not see it or send it back.
func (a *auth) authenticateWebSocket(r *http.Request) (user, error) {
	if a.tokens == nil || !wsstream.IsWebSocketRequest(r) {
		return user{}, errNoCredential
	}
	token, others, err := splitProtocols(r.Header[protocolHeader])
	if err != nil {
		return user{}, err
	}
	if token == "" {
		return user{}, errNoCredential
	}
	if len(others) == 0 {
		return user{}, errors.New("read bearer token: no other subprotocol is offered")
	}
	u, err := a.tokens.authenticate(r.Context(), token, connlimit.SourceOf(r.RemoteAddr))
	if err != nil {
		return user{}, err
	}
	r.Header.Set(protocolHeader, strings.Join(others, ","))
	return u, nil
}

// splitProtocols separates the token from the other subprotocols.
func splitProtocols(headers []string) (token string, others []string, err error) {
	found := false
	for protocol := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		protocol = strings.TrimSpace(protocol)
		if protocol == "" {
			continue
		}
		encoded, ok := strings.CutPrefix(protocol, bearerProtocolPrefix)
		if !ok {
			others = append(others, protocol)
			continue
		}
		if found {
			return "", nil, errors.New("read bearer token: more than one subprotocol carries one")
		}
		found = true
		decoded, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || !utf8.Valid(decoded) {
			return "", nil, errors.New("read bearer token: the subprotocol is malformed")
		}
		token = string(decoded)
	}
	return token, others, nil
}
