package server

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"k8s.io/streaming/pkg/httpstream/wsstream"
)

const (
	protocolHeader = "Sec-Websocket-Protocol" // as net/http spells it
	// tokenProtocol begins the subprotocol that is a bearer token in disguise: programs in
	// browsers can send no other header with a WebSocket.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// byProtocol takes a bearer token from among the subprotocols of a WebSocket. A good one is
// taken out of them: no handler should ever see it, and the client must not get it back.
func (g *guard) byProtocol(r *http.Request) (identity, error) {
	if g.tokens == nil || !wsstream.IsWebSocketRequest(r) {
		return identity{}, errNoCredential
	}
	token, others, err := splitProtocols(r.Header[protocolHeader])
	if err != nil {
		return identity{}, err
	}
	if token == "" {
		return identity{}, errNoCredential
	}
	if len(others) == 0 {
		return identity{}, errors.New("read bearer token: there must be a subprotocol beside it")
	}
	who, err := g.tokens.review(r.Context(), token)
	if err != nil {
		return identity{}, err
	}
	r.Header.Set(protocolHeader, strings.Join(others, ","))
	return who, nil
}

// splitProtocols parts the token from the true subprotocols.
func splitProtocols(headers []string) (token string, others []string, err error) {
	found := false
	for protocol := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		protocol = strings.TrimSpace(protocol)
		if protocol == "" {
			continue
		}
		encoded, is := strings.CutPrefix(protocol, tokenProtocol)
		if !is {
			others = append(others, protocol)
			continue
		}
		if found {
			return "", nil, errors.New("read bearer token: more than one subprotocol holds one")
		}
		found = true
		decoded, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || !utf8.Valid(decoded) {
			return "", nil, errors.New("read bearer token: the subprotocol that holds it is not well-formed")
		}
		token = string(decoded)
	}
	return token, others, nil
}
