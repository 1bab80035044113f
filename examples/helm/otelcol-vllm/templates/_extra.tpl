{{/* Whether metrics are sent. */}}
{{- define "otelcol-vllm.sends" -}}
{{- if or .Values.backend.endpoint .Values.backend.preset -}}true{{- end -}}
{{- end }}

{{/* Whether a Prometheus can scrape the metrics: always where nothing else takes them, or a PodMonitor says so. */}}
{{- define "otelcol-vllm.scrape" -}}
{{- if or .Values.prometheus.scrape .Values.prometheus.podMonitor (not (include "otelcol-vllm.sends" .)) -}}true{{- end -}}
{{- end }}

{{/* Whether metrics are sent, and can be scraped, too. */}}
{{- define "otelcol-vllm.both" -}}
{{- if and (include "otelcol-vllm.sends" .) (include "otelcol-vllm.scrape" .) -}}true{{- end -}}
{{- end }}

{{/* What values add to the configuration of the mode, and config over it. Empty if nothing. */}}
{{- define "otelcol-vllm.extra" -}}
{{- $v := .Values -}}
{{- $extra := dict -}}
{{- $common := list "memory_limiter" "vllm" -}}
{{- $preset := dict -}}
{{- with $v.backend.preset -}}
{{- $preset = $.Files.Get (printf "files/backends/%s.yaml" .) | fromYaml -}}
{{- end -}}
{{- $list := dig "service" "pipelines" "metrics" "processors" $common $preset -}}
{{- if include "otelcol-vllm.both" . -}}
{{- $pipelines := dict "metrics" (dict "exporters" (list "otlp_http" "prometheus")) -}}
{{- if $preset -}}
{{- /* What a preset does for a vendor is not for Prometheus: it takes staleness markers and counters away. */ -}}
{{- $vendor := $list -}}
{{- range $common -}}{{- $vendor = without $vendor . -}}{{- end -}}
{{- $list = $common -}}
{{- $extra = dict "connectors" (dict "forward" dict) -}}
{{- $pipelines = dict
  "metrics" (dict "processors" $common "exporters" (list "prometheus" "forward"))
  "metrics/backend" (dict "receivers" (list "forward") "processors" $vendor "exporters" (list "otlp_http")) -}}
{{- end -}}
{{- $extra = mergeOverwrite $extra (dict "service" (dict "pipelines" $pipelines)) -}}
{{- end -}}
{{- if $v.backend.headers -}}
{{- $headers := dict -}}
{{- range $i, $header := $v.backend.headers -}}
{{- $_ := set $headers $header.name (printf "${env:BACKEND_HEADER_%d}" $i) -}}
{{- end -}}
{{- $extra = mergeOverwrite $extra (dict "exporters" (dict "otlp_http" (dict "headers" $headers))) -}}
{{- end -}}
{{- if $v.clusterName -}}
{{- $statement := printf "set(resource.attributes[\"k8s.cluster.name\"], %q)" $v.clusterName -}}
{{- $extra = mergeOverwrite $extra (dict "processors" (dict "transform/cluster" (dict "metric_statements" (list $statement)))) -}}
{{- end -}}
{{- $receiver := dict -}}
{{- if gt (len $v.models.namespaces) 1 -}}
{{- $_ := set $receiver "discovery" (dict "kubernetes" (dict "namespaces" $v.models.namespaces)) -}}
{{- end -}}
{{- $engines := int (include "otelcol-vllm.engines" .) -}}
{{- if gt $engines 1000 -}}
{{- $_ := set $receiver "limits" (dict "targets" $engines) -}}
{{- $extra = mergeOverwrite $extra (dict "processors" (dict "vllm" (dict "max_series" (mul $engines 100)))) -}}
{{- end -}}
{{- if $receiver -}}
{{- $extra = mergeOverwrite $extra (dict "receivers" (dict (ternary "vllm/lora" "vllm" (eq $v.mode "gateway")) $receiver)) -}}
{{- end -}}
{{- $extra = mergeOverwrite $extra (deepCopy $v.config) -}}
{{- if $v.clusterName -}}
{{- /* After vllm, whoever has written the list: metrics of pools have the name, too, and labels are made of it. */ -}}
{{- $named := list -}}
{{- range without (dig "service" "pipelines" "metrics" "processors" $list $extra) "transform/cluster" -}}
{{- $named = append $named . -}}
{{- if eq . "vllm" -}}{{- $named = append $named "transform/cluster" -}}{{- end -}}
{{- end -}}
{{- $extra = mergeOverwrite $extra (dict "service" (dict "pipelines" (dict "metrics" (dict "processors" $named)))) -}}
{{- end -}}
{{- with $extra -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}
