declare module 'virtual:core' {
    const packed_base64: string;
    export default packed_base64;
}
