package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/clip"
)

const (
	userAgent    = "kube-probe/1.37"
	maxBody      = clip.Output
	maxHeaders   = 64 << 10 // of a response; a pod may send them to each of its probes at the same time
	maxRedirects = 10
)

// newHTTPClient returns a client that accepts any certificate, keeps no connection open and uses
// no proxy.
func newHTTPClient(protocols *http.Protocols) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives:  true,
			DisableCompression: true,
			Proxy:              nil,
			Protocols:          protocols,

			MaxResponseHeaderBytes: maxHeaders,
		},
		CheckRedirect: followSameHost,
	}
}

func unencryptedHTTP2() *http.Protocols {
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	return &only
}

// followSameHost follows redirects within the same host only: a probe must not be used to reach
// other hosts from the node.
func followSameHost(next *http.Request, previous []*http.Request) error {
	if next.URL.Hostname() != previous[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(previous) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

func (c *Checks) checkHTTP(ctx context.Context, t Target) Outcome {
	request, err := httpRequest(ctx, t)
	if err != nil {
		return errored(err)
	}
	client := c.http
	if protocol := t.Probe.HTTPGet.Protocol; protocol != nil && *protocol == v1.HTTPProtocolHTTP2 {
		client = c.http2
	}
	response, err := client.Do(request)
	if err != nil {
		var urlErr *url.Error
		if errors.As(err, &urlErr) && ctx.Err() != nil {
			urlErr.Err = errors.New("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
		}
		return unreachable(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody)) // the rest is not read
	if err != nil {
		return unreachable(ctx, err)
	}
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return failed(fmt.Sprintf("HTTP probe failed with statuscode: %d", response.StatusCode))
	}
	if response.StatusCode >= 300 { // a redirect to another host
		result := passed("Probe terminated redirects, Response body: " + string(body))
		result.Warning = true
		return result
	}
	return passed(string(body))
}

func httpRequest(ctx context.Context, t Target) (*http.Request, error) {
	get := t.Probe.HTTPGet
	port, err := portOf(get.Port, t.Container)
	if err != nil {
		return nil, err
	}
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = strings.ToLower(string(v1.URISchemeHTTP))
	}
	target, err := url.Parse(get.Path)
	if err != nil {
		target = &url.URL{Path: get.Path}
	}
	target.Scheme, target.Host = scheme, addressOf(get.Host, port, t)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range get.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
		if strings.EqualFold(h.Name, "Host") {
			request.Host = h.Value
		}
	}
	setDefault(request.Header, "User-Agent", userAgent)
	setDefault(request.Header, "Accept", "*/*")
	return request, nil
}

// setDefault sets a header that the spec does not set. One that the spec sets to "" is not sent.
func setDefault(h http.Header, name, value string) {
	values, ok := h[name]
	switch {
	case !ok:
		h.Set(name, value)
	case len(values) > 0 && values[0] == "":
		h[name] = nil
	}
}
