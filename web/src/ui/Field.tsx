import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from "react";
import { Icon, type IconName } from "./Icon";
import { names } from "./names";
import { Prose } from "./Prose";

interface FieldProps {
  label: ReactNode;
  /** The label is for screen readers only: the control says by itself what it is. */
  isLabelHidden?: boolean;
  hint?: ReactNode;
  error?: string | null;
  isRequired?: boolean;
  children: (control: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }) => ReactNode;
}

/** A control with its label, a hint and what is wrong with its value. */
export function Field({ label, isLabelHidden = false, hint, error, isRequired = false, children }: FieldProps) {
  const id = useId();
  const said = [hint !== undefined && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className="ui-field">
      <label htmlFor={id} className={isLabelHidden ? "visually-hidden" : "ui-field-label"}>
        {label}
        {isRequired && <span className="ui-field-required"> (required)</span>}
      </label>
      {children({
        id,
        ...(said !== "" && { "aria-describedby": said }),
        ...(error && { "aria-invalid": true as const }),
      })}
      {hint !== undefined && (
        <div id={`${id}-hint`} className="ui-field-hint">
          {hint}
        </div>
      )}
      {error && (
        <div id={`${id}-error`} className="ui-field-error">
          <Icon name="error" size={12} /> <Prose text={error} />
        </div>
      )}
    </div>
  );
}

export interface InputProps extends InputHTMLAttributes<HTMLInputElement> {
  icon?: IconName;
  ref?: Ref<HTMLInputElement>;
}

export function Input({ icon, className, ...rest }: InputProps) {
  if (icon === undefined) return <input className={names("ui-input", className)} {...rest} />;
  return (
    <span className="ui-input-frame">
      <Icon name={icon} size={14} />
      <input className={names("ui-input", "ui-input-with-icon", className)} {...rest} />
    </span>
  );
}

export function Textarea({
  className,
  ...rest
}: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
  return <textarea className={names("ui-input", "ui-textarea", className)} {...rest} />;
}

export interface Choice {
  value: string;
  label: string;
  isDisabled?: boolean;
}

interface SelectProps extends Omit<SelectHTMLAttributes<HTMLSelectElement>, "children"> {
  choices: readonly (Choice | string)[];
  ref?: Ref<HTMLSelectElement>;
}

export function Select({ choices, className, ...rest }: SelectProps) {
  return (
    <span className="ui-select-frame">
      <select className={names("ui-input", "ui-select", className)} {...rest}>
        {choices.map((choice) => {
          const { value, label, isDisabled } =
            typeof choice === "string" ? { value: choice, label: choice, isDisabled: false } : choice;
          return (
            <option key={value} value={value} disabled={isDisabled}>
              {label}
            </option>
          );
        })}
      </select>
      <Icon name="chevron-down" size={12} />
    </span>
  );
}

interface CheckboxProps extends Omit<InputHTMLAttributes<HTMLInputElement>, "type"> {
  label: ReactNode;
  isLabelHidden?: boolean;
  /** Some of what it stands for is chosen, and some is not. */
  isMixed?: boolean;
}

export function Checkbox({ label, isLabelHidden = false, isMixed = false, className, ...rest }: CheckboxProps) {
  return (
    <label className={names("ui-checkbox", className)}>
      <input
        type="checkbox"
        ref={(box) => {
          if (box !== null) box.indeterminate = isMixed;
        }}
        {...rest}
      />
      <span className={isLabelHidden ? "visually-hidden" : undefined}>{label}</span>
    </label>
  );
}
