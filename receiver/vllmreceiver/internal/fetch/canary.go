package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
)

// Canary is a request for one token.
type Canary struct {
	// Path is where it is sent, on the server of the metrics.
	Path string
	// Model is the model that is asked.
	Model string
	// Key is sent as a bearer token; empty leaves the credentials of the target as they are.
	Key     configopaque.String
	Timeout time.Duration
}

// CanaryOutcome is the result of a canary.
type CanaryOutcome string

// The outcomes of a canary.
const (
	CanaryOK        CanaryOutcome = "ok"
	CanaryTimeout   CanaryOutcome = "timeout"
	CanaryRefused   CanaryOutcome = "refused"
	CanaryHTTPError CanaryOutcome = "http_error"
	CanaryInvalid   CanaryOutcome = "invalid"
	// CanaryRejected means that the next canary would be answered in the same way, until a
	// setting is changed. The error says which.
	CanaryRejected CanaryOutcome = "rejected"
	// CanaryCanceled means that the target stopped in that time.
	CanaryCanceled CanaryOutcome = "canceled"
)

// modelsPath is where a server lists its models, and modelsLimit the most bytes that are read
// of the list, which has room for some hundred adapters.
const (
	modelsPath  = "/v1/models"
	modelsLimit = 256 << 10
	maxModel    = 1000
)

// SendCanary sends a canary. The error is not nil if it is rejected.
func (c *Client) SendCanary(ctx context.Context, canary Canary) (CanaryOutcome, error) {
	body := map[string]any{"model": canary.Model, "max_tokens": 1, "temperature": 0}
	if strings.HasSuffix(canary.Path, "chat/completions") {
		body["messages"] = []map[string]string{{"role": "user", "content": "1"}}
	} else {
		body["prompt"] = "1"
	}
	content, err := json.Marshal(body)
	if err != nil {
		return CanaryInvalid, nil
	}
	var answer struct {
		Choices []json.RawMessage `json:"choices"`
	}
	outcome, err := c.call(ctx, canary, canary.Path, content, sideLimit, &answer)
	if outcome == CanaryOK && len(answer.Choices) == 0 {
		return CanaryInvalid, nil
	}
	return outcome, err
}

// FirstModel returns the first model of the server that is not an adapter of another one.
func (c *Client) FirstModel(ctx context.Context, canary Canary) (string, CanaryOutcome, error) {
	var answer struct {
		Data []struct {
			ID     string `json:"id"`
			Parent string `json:"parent"`
		} `json:"data"`
	}
	outcome, err := c.call(ctx, canary, modelsPath, nil, modelsLimit, &answer)
	if outcome != CanaryOK && outcome != CanaryInvalid {
		return "", outcome, err
	}
	for _, model := range answer.Data {
		if outcome == CanaryOK && model.Parent == "" && model.ID != "" && len(model.ID) <= maxModel {
			return model.ID, CanaryOK, nil
		}
	}
	return "", CanaryRejected, newError(OutcomeOther, nil, "%s does not name a model; set canary::model", modelsPath)
}

// call sends a request, with POST if it has a body, and decodes the answer.
func (c *Client) call(ctx context.Context, canary Canary, path string, content []byte, limit int64, answer any) (CanaryOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, canary.Timeout)
	defer cancel()
	request, err := c.request(c.sibling(path), "application/json", "identity")
	if err != nil {
		return canaryFailure(ctx, err), nil
	}
	if content != nil {
		request.Method, request.ContentLength = http.MethodPost, int64(len(content))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		request.Body, _ = request.GetBody()
		request.Header.Set("Content-Type", "application/json")
		// Not sent. It lets net/http repeat the request where the server has just closed a
		// connection that was kept, which is not a failure.
		request.Header["Idempotency-Key"] = []string{}
	}
	if canary.Key != "" {
		request.Header.Set("Authorization", "Bearer "+string(canary.Key))
	}
	// A canary is for this server and no other.
	direct := *c.http
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := direct.Do(request.WithContext(ctx))
	if err != nil {
		return canaryFailure(ctx, err), nil
	}
	defer closeBody(response)
	switch code := response.StatusCode; {
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return CanaryHTTPError, nil
	case code >= 300:
		return CanaryRejected, rejection(response, path)
	case code != http.StatusOK:
		return CanaryInvalid, nil
	}
	from, err := decompressed(response)
	if err != nil {
		return canaryFailure(ctx, err), nil
	}
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return canaryFailure(ctx, err), nil
	}
	if int64(len(body)) > limit || json.Unmarshal(body, answer) != nil {
		return CanaryInvalid, nil
	}
	return CanaryOK, nil
}

// canaryFailure returns the outcome of a canary without an answer.
func canaryFailure(ctx context.Context, err error) CanaryOutcome {
	switch transportError(ctx, err).Outcome {
	case OutcomeTimeout:
		return CanaryTimeout
	case OutcomeCanceled:
		return CanaryCanceled
	case OutcomeNotPrometheus, OutcomeTooLarge:
		return CanaryInvalid
	}
	return CanaryRefused
}

// rejection says what to do about an answer that does not change by itself.
func rejection(response *http.Response, path string) *Error {
	const set = "the server answered %s: "
	switch code := response.StatusCode; {
	case code < 400:
		return newError(OutcomeRedirect, nil, set+"a canary follows no redirect; write the final address in the endpoint", status(response))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return newError(OutcomeUnauthorized, nil, set+"it wants another key; set canary::api_key, or auth or headers of the target", status(response))
	case path == modelsPath:
		return newError(OutcomeNotFound, nil, set+"it does not list its models at %s; set canary::model", status(response), path)
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return newError(OutcomeNotFound, nil, set+"it has no such model, or nothing at this path; check canary::model and canary::path", status(response))
	}
	return newError(OutcomeStatus, nil, set+"it does not take the request; check canary::model and canary::path, and look at its log", status(response))
}
